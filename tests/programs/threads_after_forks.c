/* Starts threads one after the other, behind processes that it has forked and that are over, and says whether its memory has
   become more by that than a few of them take. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *given) { return given; }

static int mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0, letter;
    while ((letter = fgetc(file)) != EOF) lines += letter == '\n';
    fclose(file);
    return lines;
}

static void start(int threads) {
    for (int i = 0; i < threads; i++) {
        pthread_t made;
        pthread_create(&made, 0, thread, 0);
        pthread_join(made, 0);
    }
}

int main(void) {
    start(10);
    int before = mappings();
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        if (!child) _exit(0);
        waitpid(child, 0, 0);
    }
    start(300);
    puts(mappings() < before + 150 ? "as before" : "more");
    return 0;
}
