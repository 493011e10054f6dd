exec gcc -O2 -g -w -D_FILE_OFFSET_BITS=64 -o "$OUT" \
    blocksort.c bzip2.c bzlib.c compress.c crctable.c decompress.c huffman.c randtable.c
