/* Makes some bytes of a KIND from a SEED, compresses them at a LEVEL, and expands what came of it. Prints how
   large that was, a hash of it, and whether all bytes came back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zstd.h"

enum { MOST = 1 << 20 };
static unsigned char in[MOST], back[MOST], packed[MOST + MOST / 4];
static unsigned long long state;

static unsigned random_below(unsigned limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

static void make(const char *kind, size_t size) {
    static const char *const words[] = {"the ", "slice ", "of ", "a ", "program\n", "that ", "observes ", "profile "};
    for (size_t at = 0; at < size;) {
        if (strcmp(kind, "text") == 0) {
            for (const char *word = words[random_below(8)]; *word && at < size; word++) {
                in[at++] = (unsigned char)*word;
            }
        } else if (strcmp(kind, "copies") == 0 && at > 16 && random_below(3)) {
            size_t from = at - 1 - random_below(at < 4000 ? (unsigned)at : 4000);
            for (unsigned left = 4 + random_below(40); left && at < size; left--) {
                in[at++] = in[from++];
            }
        } else if (strcmp(kind, "run") == 0) {
            in[at] = 'r';
            at++;
        } else if (strcmp(kind, "almost") == 0) {
            in[at] = at + 1 + random_below(24) < size ? 'r' : 's';
            at++;
        } else {
            in[at++] = (unsigned char)random_below(strcmp(kind, "few") == 0 ? 4 : 256);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        return 2;
    }
    state = (unsigned long long)atoi(argv[2]) * 2654435761u;
    size_t size = (size_t)atoi(argv[3]);
    make(argv[1], size < MOST ? size : MOST);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, atoi(argv[4]));
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, atoi(argv[2]) % 3 == 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 17);
    size_t made = ZSTD_compress2(context, packed, sizeof packed, in, size);
    if (ZSTD_isError(made)) {
        printf("not compressed: %s\n", ZSTD_getErrorName(made));
        return 1;
    }
    unsigned long long hash = 14695981039346656037u;
    for (size_t i = 0; i < made; i++) {
        hash = (hash ^ packed[i]) * 1099511628211u;
    }
    printf("%zu bytes: %zu, %016llx\n", size, made, hash);
    size_t got = ZSTD_decompress(back, sizeof back, packed, made);
    if (ZSTD_isError(got)) {
        printf("not expanded: %s\n", ZSTD_getErrorName(got));
        return 1;
    }
    puts(got == size && memcmp(in, back, size) == 0 ? "all came back" : "something else came back");
    ZSTD_freeCCtx(context);
    return 0;
}
