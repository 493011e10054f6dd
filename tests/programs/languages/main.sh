#!/bin/sh
# Read by a program in Haskell that says what is wrong with it.
for file in `ls`; do
  echo $file | grep x
  cat $file | wc -l
  unused=3
done
if [ $a == 3 ]; then echo "$(date)"; fi
