# The cases that jq's authors test it with (a program, its input, and what must come out, which is not used here: the
# reference says it), and more of what they have few of.
folder=$PWD
awk -v folder="$folder" '
    function flush() {
        if (lines < 3) return
        number++
        print program > (folder "/" number ".jq")
        print input > (folder "/" number ".json")
        close(folder "/" number ".jq")
        close(folder "/" number ".json")
        print "-c -f " folder "/" number ".jq < " folder "/" number ".json"
        if (number % 5 == 0) print "-S -f " folder "/" number ".jq < " folder "/" number ".json"
        if (number % 7 == 0) print "-a -c -f " folder "/" number ".jq < " folder "/" number ".json"
    }
    /^%%FAIL/ { skip = 1 }
    /^#/ { next }
    /^[ \t]*$/ { flush(); lines = 0; skip = 0; next }
    skip { next }
    { lines++ }
    lines == 1 { program = $0 }
    lines == 2 { input = $0 }
    END { flush() }
' "$SOURCE/tests/jq.test" | grep -v -e input_line -e now -e '$__' 

ask() {
    number=$((number + 1))
    printf '%s\n' "$1" > "$folder/more-$number.jq"
    printf '%s\n' "$2" > "$folder/more-$number.json"
    echo "-c -f $folder/more-$number.jq < $folder/more-$number.json"
}
number=0
for text in '"\ud83d\ude00 and \ud834\udd1e"' '"\ud83d\ude03x"' '"\ud83c\udf55"' '"\udbff\udfff\u0041"' '"\ud800\udc00"' '"\u001f\u000b\u0001\u0012"' \
    '"\u0010\u0003"' '"a\u001bb"' '["\u0019",1]' '{"\u000e":"\u001d"}'; do
    ask . "$text"
    ask 'tojson, length' "$text"
done
for keys in '[-1]' '[-1],[-2]' '[-1],[-3]' '[0],[-1]' '[1],[-2],[-4]' '[-5]' '[2:4],[-1]'; do
    ask "delpaths([$keys])" '[10,20,30,40,50]'
    ask "delpaths([$keys])" '[1,2]'
done
for text in '"a, b, c, "' '"one, two"' '", "' '"x, , y, "' '"ends, "' '"a,b,"'; do
    ask 'split(", ")' "$text"
    ask 'split(",")' "$text"
done
for list in '[[1,2],[1]]' '[[],[0]]' '[[2],[1,9],[1]]' '[[1],[1,null]]' '[["a"],["a","b"],["a","a"]]' '[[3],[2],[1]]'; do
    ask sort "$list"
    ask 'unique, max' "$list"
done
for list in '[1,2,3,4,5]' '[9,8,7]' '[1,2,3,4,5,6,7,8]' '[]'; do
    ask '. as $x | (.[3] = 0), (.[1] = 7), $x' "$list"
    ask '[.[] as $y | . + [$y]]' "$list"
    ask 'map(tostring) | join("--------")' "$list"
    ask '[limit(40; repeat("ab"))] | add' "$list"
done
for slice in '-2:' ':-1' '-9:2' '-4:-1' '-6:3' '1:' ':0' '3:1' '-7:' '2:9'; do
    ask ".[$slice]" '[1,2,3,4]'
    ask ".[$slice]" '"abcdef"'
    ask ".[$slice] = [7,8,9]" '[1,2,3,4,5]'
    ask ".[$slice] = [0]" '[1,2,3]'
done
