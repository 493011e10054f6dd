# Neither the seed of its hashes nor which strings its cache of them holds may depend on addresses.
exec gcc -O2 -g -w "-Dluai_makeseed(L)=0x5eedu" -DSTRCACHE_N=1 -DSTRCACHE_M=2 -I. \
    -o "$OUT" *.c "$SUBJECT/main.c" -lm
