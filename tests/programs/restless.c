/* Does what it does by the time, its process number and random numbers, asked for in all ways, in its first thread, in
 * others, in children, and in what it becomes: each bit of each decides a branch. With an argument it also prints them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Thread_local volatile unsigned sink;

__attribute__((noinline)) static void decide(uint64_t number) {
    for (int bit = 0; bit < 64; bit++)
        if (number >> bit & 1) sink += bit; else sink ^= bit;
}

static uint64_t of_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static uint64_t of_device(const char *name) {
    uint64_t number = 0;
    int file = open(name, O_RDONLY);
    if (file < 0 || read(file, &number, sizeof number) != sizeof number) abort();
    close(file);
    return number;
}

__attribute__((noinline)) static void ask(void) {
    uint64_t random = 0;
    struct timeval day;
    uint64_t before = of_clock(CLOCK_MONOTONIC);
    decide(before);
    decide(of_clock(CLOCK_REALTIME));
    decide(of_clock(CLOCK_PROCESS_CPUTIME_ID));
    gettimeofday(&day, 0);
    decide(day.tv_sec * 1000000u + day.tv_usec);
    decide(time(0));
    decide(getpid() * 65536u + getppid());
    decide(gettid());
    if (getrandom(&random, sizeof random, 0) != sizeof random) abort();
    decide(random);
    decide(of_device("/dev/urandom"));
    decide(of_device("/dev/random"));
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, 0);
    /* Time never goes back, and goes on by what was slept. */
    if (of_clock(CLOCK_MONOTONIC) < before + 1000000) abort();
}

static void *start(void *unused) {
    ask();
    ask();
    return unused;
}

int main(int count, char **words) {
    uint64_t given[2];
    memcpy(given, (void *)getauxval(AT_RANDOM), sizeof given);
    decide(given[0]);
    decide(given[1]);
    ask();
    pthread_t threads[2];
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], 0, start, 0);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    pid_t child = fork();
    if (child == 0) {
        ask();
        _exit(5);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) return 1;
    /* The number by which /proc knows it is its own. */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", getpid());
    char own[4096], other[4096];
    ssize_t one = readlink("/proc/self/exe", own, sizeof own), two = readlink(path, other, sizeof other);
    if (one <= 0 || one != two || memcmp(own, other, one)) return 2;
    if (count > 1 && !strcmp(words[1], "print"))
        printf("%d %lld %016llx\n", getpid(), (long long)time(0), (unsigned long long)of_device("/dev/urandom"));
    if (count > 1 && !strcmp(words[1], "again")) {
        char *arguments[] = {words[0], "print", 0};
        fflush(stdout);
        execv("/proc/self/exe", arguments);
        return 3;
    }
    return 0;
}
