/* Executes its arguments with an environment as no library would write it; without arguments, writes the one that it has. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments) {
    if (count == 1) {
        for (char **entry = environ; *entry; entry++) {
            printf("%s.\n", *entry);
        }
        return 0;
    }
    char cache[4096];
    const char *folder = getenv("TOMO_CACHE_DIR");
    snprintf(cache, sizeof cache, "TOMO_CACHE_DIR=%s", folder ? folder : "");
    char *entries[] = {"Z=1", "B=2", "naked", "", "=odd", "B=3", cache, "A=4", "B=", "LISTEN_PID=77", NULL};
    execve(arguments[1], arguments + 1, entries);
    return 127;
}
