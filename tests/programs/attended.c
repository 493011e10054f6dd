/* Calls of `work`, a known number of them, in threads and processes; ends with 7. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 150

static volatile unsigned results[8], handled;

__attribute__((noinline)) static unsigned work(unsigned seed) {
    unsigned sum = 0;
    if (seed % 3 == 0)
        sum += seed * 5;
    if (seed & 1)
        sum ^= 77;
    return sum + seed;
}

__attribute__((noinline)) static void *all(void *place) {
    unsigned sum = 0;
    for (unsigned round = 0; round < TIMES; round++)
        sum += work(round);
    *(volatile unsigned *)place = sum;
    return NULL;
}

static void handler(int number) {
    handled += number;
}

/* On some virtual machines `int1` is executed again when its handler has returned, for ever. */
static void bounded_handler(int number) {
    handled += number;
    if (handled > 1000 * SIGTRAP)
        _exit(3);
}

/* A debugger's instruction, `int1`, is where it begins. */
__attribute__((noinline)) static void stops(unsigned seed) {
    __asm__ volatile(".byte 0xf1");
    if (seed & 1)
        results[5]++;
    for (unsigned at = 0; at < seed; at++)
        __asm__ volatile(".byte 0xf1");
}

static void *endless(void *place) {
    for (;;)
        all(place);
    return NULL;
}

static void threads(void *(*body)(void *)) {
    pthread_t made[4];
    for (int at = 0; at < 4; at++)
        pthread_create(&made[at], NULL, body, (void *)&results[at]);
    if (body == endless) {
        all((void *)&results[4]);
        kill(getpid(), SIGKILL);
    }
    for (int at = 0; at < 4; at++)
        pthread_join(made[at], NULL);
}

static void forks(void) {
    pid_t made[3];
    for (int at = 0; at < 3; at++) {
        made[at] = fork();
        if (made[at] == 0) {
            all((void *)&results[at]);
            _exit(0);
        }
    }
    for (int at = 0; at < 3; at++)
        waitpid(made[at], NULL, 0);
}

int main(int count, char **words) {
    const char *scenario = count > 1 ? words[1] : "";
    if (strcmp(scenario, "threads") == 0)
        threads(all);
    else if (strcmp(scenario, "killed") == 0)
        threads(endless);
    else if (strcmp(scenario, "forks") == 0)
        forks();
    else if (strcmp(scenario, "vfork") == 0) {
        pid_t made = vfork();
        if (made == 0)
            _exit(3);
        waitpid(made, NULL, 0);
        all((void *)&results[0]);
    } else if (strcmp(scenario, "signals") == 0) {
        struct sigaction action = { .sa_handler = handler, .sa_flags = SA_NODEFER };
        sigaction(SIGTRAP, &action, NULL);
        signal(SIGUSR1, handler);
        for (int at = 0; at < 20; at++)
            raise(at & 1 ? SIGUSR1 : SIGTRAP);
        all((void *)&results[0]);
        if (handled != 10 * SIGUSR1 + 10 * SIGTRAP)
            return 1;
    } else if (strcmp(scenario, "stops") == 0) {
        struct sigaction action = { .sa_handler = bounded_handler, .sa_flags = SA_NODEFER };
        sigaction(SIGTRAP, &action, NULL);
        for (int at = 0; at < 10; at++)
            stops(at);
        all((void *)&results[0]);
        if (handled != (10 + 45) * SIGTRAP)
            return 1;
    } else
        all((void *)&results[0]);
    puts(scenario);
    return 7;
}
