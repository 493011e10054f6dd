/* Forks in a function that others call, so many generations deep; each child returns to those who had called in its parent, works,
 * and goes on. Ends with 0. Where `yield` stands for a way to fork, one process does what all children do, without forking. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sum;
static long number;

__attribute__((noinline)) static int by_number(void) {
    return (int)syscall(number);
}

__attribute__((noinline)) static int parts(unsigned depth, int (*fork_by)(void)) {
    int child = depth == 0 ? fork_by() : parts(depth - 1, fork_by);
    sum += depth;
    return child;
}

__attribute__((noinline)) static void work(unsigned seed) {
    for (unsigned round = 0; round < 20; round++)
        sum += round % 3 == 0 ? seed * 5 : seed & 1 ? 77 : round;
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    unsigned generations = count > 2 ? atoi(words[2]) : 1;
    int (*fork_by)(void) = fork;
    if (strcmp(way, "yield") == 0)
        fork_by = sched_yield;
    if (strcmp(way, "_Fork") == 0)
        fork_by = _Fork;
    if (strcmp(way, "number") == 0) {
        fork_by = by_number;
        number = SYS_fork;
    }
    if (strcmp(way, "yield-number") == 0) {
        fork_by = by_number;
        number = SYS_sched_yield;
    }
    for (unsigned generation = 0; generation < generations; generation++) {
        int child = parts(generation + 1, fork_by), status = 1;
        if (child != 0) {
            waitpid(child, &status, 0);
            return status != 0;
        }
        work(generation);
    }
    return 0;
}
