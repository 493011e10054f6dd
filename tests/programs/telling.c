/* Tells how its run went: by its exit code, by its errors, or by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tomo_outcome(const char *how) {
    const char *path = getenv("TOMO_OUTCOME");
    FILE *file = path ? fopen(path, "w") : 0;
    if (file) {
        fputs(how, file);
        fclose(file);
    }
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "fine";
    if (!strcmp(way, "errors"))
        fprintf(stderr, "starting\nerror: disk is full\n");
    if (!strcmp(way, "tells"))
        tomo_outcome("failure disk");
    if (!strcmp(way, "well"))
        tomo_outcome("success");
    return !strcmp(way, "well") ? 3 : 0;
}
