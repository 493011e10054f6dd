// Lines whose code goes on where ways join.
#include <stdio.h>

static unsigned used;
static char bytes[64];

__attribute__((noinline)) static void flush(void) {
    fwrite(bytes, 1, used, stderr);
    used = 0;
}

#define PUT(byte) { bytes[used++] = (byte); if (used == 64) flush(); }

__attribute__((noinline)) static void put_three(int byte) {
    PUT(byte);
    PUT(3);
    PUT(byte + 1);
}

int main(int count, char **words) {
    (void)words;
    put_three(count);
    printf("%u\n", used);
    return 0;
}
