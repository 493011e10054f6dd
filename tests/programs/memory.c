/* Takes all further memory from the process that started it, then ends as it is told: by SIGTERM, or with 5. What there is to read of
 * it is large. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

__asm__(".text; .skip 32 << 20, 0xcc");

int main(int argc, char **argv) {
    struct rlimit none = {4096, 4096};
    if (argc > 2 && prlimit(getppid(), RLIMIT_AS, &none, NULL)) {
        return 1;
    }
    if (strcmp(argv[1], "SIGTERM") == 0) {
        raise(SIGTERM);
    }
    return 5;
}
