/* Does otherwise each time that it runs, after a thousand rounds that are always the same: the file that it is given
 * says how often it has. */
#include <stdio.h>

static volatile unsigned sink;

__attribute__((noinline)) static void same(unsigned i) {
    if (i & 1) sink += i; else sink ^= i;
}

__attribute__((noinline)) static void other(unsigned i, unsigned times) {
    if (i % (times + 2)) sink += i; else sink ^= i;
    if (i % 5 < times) sink *= 3;
}

int main(int count, char **words) {
    unsigned times = 0;
    for (unsigned i = 0; i < 1000; i++) same(i);
    FILE *file = count > 1 ? fopen(words[1], "a+") : 0;
    if (!file) return 1;
    while (getc(file) != EOF) times++;
    fputc('x', file);
    fclose(file);
    for (unsigned i = 0; i < 100 + times; i++) other(i, times);
    return 0;
}
