# Bytes of several kinds and sizes, at levels of all strategies.
seed=0
for kind in text copies run almost noise few; do
    for size in 0 1 37 300 4000 17000 140000; do
        for level in 1 3 5 9 13 17; do
            seed=$((seed + 1))
            echo "$kind $seed $size $level"
        done
    done
done
