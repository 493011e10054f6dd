# At -O1, with its hand-written assembly, as it is shipped; without threads and old formats.
exec gcc -O1 -g -w -DZSTD_LEGACY_SUPPORT=0 -I. -o "$OUT" \
    "$SUBJECT/main.c" common/*.c compress/*.c decompress/*.c decompress/*.S
