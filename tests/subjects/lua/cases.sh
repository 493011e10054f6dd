# Each script with forty seeds, which decide what it does.
for script in strings tables numbers closures objects errors coroutines records; do
    seed=1
    while [ "$seed" -le 40 ]; do
        echo "$SUBJECT/scripts/$script.lua $seed"
        seed=$((seed + 1))
    done
done
