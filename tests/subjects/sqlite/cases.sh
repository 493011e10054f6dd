# Each script with thirty seeds, which decide its data and what is asked of them.
for script in texts numbers joins windows trees changes; do
    seed=1
    while [ "$seed" -le 30 ]; do
        echo "$SUBJECT/scripts/$script.sql $seed"
        seed=$((seed + 1))
    done
done
