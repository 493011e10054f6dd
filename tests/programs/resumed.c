/* Faults in loops that a handler passes over, which ends in a call of the C library in place of itself, or returns. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define APART __attribute__((noinline))

static volatile unsigned sink;

static void passes(int number, siginfo_t *info, void *context) {
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    sink += number;
}

static int calls(int number, siginfo_t *info, void *context) {
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    return abs(number - (int)sink);
}

APART static unsigned leaf(unsigned value) {
    return value % 3 ? value + sink : value;
}

APART static unsigned works(unsigned rounds) {
    unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) {
        if (i & 1) sum += leaf(i); else sum ^= i;
        if (i % 5 == 2) __asm__ volatile("addl (%1), %0" : "+a"(sum) : "D"(0L) : "memory", "cc");
        if (sum & 4) sum += 3;
    }
    return sum;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = passes, .sa_flags = SA_SIGINFO};
    unsigned sum = 0;
    sigaction(SIGSEGV, &action, 0);
    sum += works(40);
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))calls;
    sigaction(SIGSEGV, &action, 0);
    sum += works(41);
    printf("%u\n", sum);
    return 0;
}
