/* Crashes in instructions next to what is observed: behind calls, at branches, in loops, and in handlers that
   interrupt those. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

static volatile int zero;
int *volatile nowhere;

APART static int sign(int n) {
    return n > 3 ? -1 : n & 1;
}

/* The result is used where it may fault. */
APART static int behind_a_call(int *p, int n) {
    int r = sign(n);
    return r + *p;
}

/* The result is looked at by a branch, with memory in between. */
APART static int between(int *p, int n) {
    int r = sign(n);
    int more = *p;
    if (r < more)
        return r;
    return more - n;
}

APART static int divides(int n) {
    int r = sign(n);
    if (r == 0)
        return n;
    return r / zero;
}

APART static int compares(const int *p, int n) {
    if (p[n] == n)
        return n;
    return 1;
}

/* A loop of one block, whose branch is at the end of what may fault. */
APART static int sums(const volatile int *p, int n) {
    int sum = 0;
    do
        sum += p[n];
    while (--n > -10000000);
    return sum;
}

/* The fault is below what a handler interrupted. */
static void again(int number) {
    if (sign(number) < 0)
        abort();
}

APART static int interrupted(int *p, int n) {
    signal(SIGSEGV, again);
    int r = sign(n);
    return r + *p;
}

APART static int dispatch(const char *way, int n) {
    static int numbers[16];
    if (strcmp(way, "stop") == 0)
        return raise(SIGSTOP);
    if (strcmp(way, "behind") == 0)
        return behind_a_call(nowhere, n) + 1;
    if (strcmp(way, "between") == 0)
        return between(nowhere, n) + 1;
    if (strcmp(way, "divides") == 0)
        return divides(n) + 1;
    if (strcmp(way, "compares") == 0)
        return compares(nowhere, n) + 1;
    if (strcmp(way, "sums") == 0)
        return sums(numbers, n) + 1;
    if (strcmp(way, "interrupted") == 0)
        return interrupted(nowhere, n) + 1;
    return 0;
}

int main(int count, char **words) {
    int sum = 0;
    for (int n = 0; n < count - 1; n++)
        sum += dispatch(words[n + 1], 7);
    printf("%d\n", sum);
    return 0;
}
