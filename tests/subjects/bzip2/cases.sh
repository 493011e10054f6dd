# Texts, runs, noise and what is left of them after compression: compressed, expanded, and expanded from archives
# that are cut, damaged or followed by something else.
export LC_ALL=C
folder=$PWD

# make KIND SEED SIZE: numbers are those of Park and Miller, which any awk computes exactly.
make() {
    awk -v kind="$1" -v seed="$2" -v size="$3" '
        function next_number() { seed = (seed * 16807) % 2147483647; return seed }
        BEGIN {
            split("the slice of a program that runs in field observes block and edge profile tomograph", words, " ")
            for (i = 0; i < 7; i++) next_number()
            while (made < size) {
                if (kind == "text") { piece = words[1 + next_number() % 14] (next_number() % 9 ? " " : "\n") }
                else if (kind == "runs") {
                    letter = sprintf("%c", 97 + next_number() % 26)
                    piece = letter
                    for (left = next_number() % 12; left > 0; left--) piece = piece letter
                } else if (kind == "long") {
                    letter = sprintf("%c", 97 + next_number() % 5)
                    piece = letter
                    for (left = next_number() % 300; left > 0; left--) piece = piece letter
                } else if (kind == "bytes") { piece = sprintf("%c", 1 + next_number() % 255) }
                else if (kind == "skewed") {
                    power = next_number() % 24
                    piece = sprintf("%c", 65 + int(power * power / 24) + (next_number() % 40 == 0 ? next_number() % 90 : 0))
                } else { piece = "ab" }
                printf "%s", piece
                made += length(piece)
            }
        }' > "$4"
}

compressed() {
    echo "-${2}c < $1"
    "$REFERENCE" "-${2}c" < "$1" > "$1.bz2"
    echo "-dc < $1.bz2"
    echo "-dcs < $1.bz2"
    echo "-t < $1.bz2"
}

number=0
for kind in text runs long bytes skewed two; do
    for size in 1 30 200 900 2000 5000 20000 60000; do
        number=$((number + 1))
        make "$kind" "$number" "$size" "$folder/$kind-$size"
        compressed "$folder/$kind-$size" $((number % 9 + 1))
    done
done
for kind in text bytes skewed runs long; do
    number=$((number + 1))
    make "$kind" "$number" 260000 "$folder/$kind-large"
    compressed "$folder/$kind-large" 1
done
: > empty
for level in 1 5 9; do
    compressed "$folder/empty" "$level"
done
for file in text-900 runs-2000 bytes-200 skewed-5000 long-900 two-30; do
    { cat "$file.bz2"; echo "and more"; } > "$file.followed"
    { cat "$file.bz2" text-30.bz2; } > "$file.twice"
    head -c 40 "$file.bz2" > "$file.cut"
    { head -c 30 "$file.bz2"; printf 'x'; tail -c +32 "$file.bz2"; } > "$file.damaged"
    for what in followed twice cut damaged; do
        echo "-dc < $folder/$file.$what"
        echo "-t < $folder/$file.$what"
        echo "-tvs < $folder/$file.$what"
    done
    echo "-dc < $folder/$file"
done
