/* Blocks that control leaves in their middle, by faults; with a word the last fault ends
   the program, there are many, or a handler sends them elsewhere. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define APART __attribute__((noinline))

static volatile int sink;
static sigjmp_buf back;

static void leaves(int signal) { siglongjmp(back, signal); }

/* Left in front of a branch. */
APART static int compared(int *place, int number) {
    if (number & 1) sink += 1; else sink += 2;
    if (place[0] > number)
        sink = 5;
    else
        sink = 6;
    return number;
}

/* Left in a loop, by the one block that is its way on. */
APART static int summed(int *places[], int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        sum += *places[i];
        sink++;
    }
    return sum;
}

APART static int divided(int number, int by) {
    int all = number / by;
    if (all > 3) sink += all; else sink -= all;
    return all;
}

/* Two deep: the handler's own fault leaves it, too. */
static int *volatile nowhere;
static void faults(int signal) {
    sink += signal;
    compared(nowhere, 7);
}

/* Comes back to the same instruction, to the next one, or somewhere else in the block. */
static char *page;
static int mode;
static void repairs(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *place = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (mode == 0) mprotect(page, 4096, PROT_READ | PROT_WRITE);
    if (mode == 1) *place += 2;
}
APART static unsigned loaded(void *place, unsigned value) {
    __asm__ volatile("movl (%1), %0" : "+r"(value) : "r"(place) : "memory");
    if (value > 3) sink += value; else sink -= value;
    return value;
}

/* Goes on in another block, into which no way leads that anybody could know. */
extern const char *const elsewhere;
static void diverts(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)elsewhere;
}
APART static unsigned diverted(void *place, unsigned value) {
    if (value & 1) sink += 1; else sink += 2;
    __asm__ volatile(
        "movl (%1), %0\n"
        "testl %0, %0\n"
        "je 1f\n"
        "2: addl $5, %0\n"
        "1:\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        "elsewhere: .quad 2b\n"
        ".popsection"
        : "+r"(value) : "r"(place) : "memory", "cc");
    return value;
}

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, 0);
}

/* Enters a function, of which a fault may take it out again. */
APART static void recovered(int *place) {
    int value = *place;
    if (value & 1) sink += 1; else sink += 2;
    siglongjmp(back, 1);
}
static void enters(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    static int some = 1, entered;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    registers[REG_RSP] = ((registers[REG_RSP] - 256) & ~15) - 8;
    registers[REG_RDI] = (greg_t)&some;
    some += entered++;
    registers[REG_RIP] = (greg_t)recovered;
}
static void sent(void) {
    int forty = 40;
    struct sigaction action = {.sa_sigaction = enters, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    for (volatile int i = 0; i < 20; i++)
        if (!sigsetjmp(back, 1)) compared(i % 4 ? &forty : 0, i);
    handle(SIGSEGV, leaves, SA_NODEFER);
    for (volatile int i = 0; i < 9; i++)
        if (!sigsetjmp(back, 1)) recovered(i % 3 ? &forty : 0);
}

/* Ends the program by the signal that it handles, or lets the fault happen once more. */
static void raises(int number) {
    signal(number, SIG_DFL);
    raise(number);
}
static void returns(int number) { sink += number; }


/* Left at 300 places, each once. */
#define ONE if (!sigsetjmp(back, 1)) sink += *(volatile int *)nowhere;
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
APART static void many(void) { HUNDRED HUNDRED HUNDRED }

int main(int argc, char **argv) {
    int some = 40;
    int *volatile places[4] = {&some, &some, 0, &some};
    handle(SIGSEGV, leaves, 0);
    handle(SIGFPE, leaves, 0);
    if (argc > 1 && !strcmp(argv[1], "many")) {
        many();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "divert")) {
        struct sigaction action = {.sa_sigaction = diverts, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, 0);
        for (volatile unsigned i = 0; i < 10; i++) diverted(i % 3 ? &some : 0, i);
        return 0;
    }
    for (volatile int i = 0; i < 100; i++)
        if (!sigsetjmp(back, 1)) compared(places[i % 4], i);
    for (volatile int i = 0; i < 9; i++)
        if (!sigsetjmp(back, 1)) summed((int **)places, i % 5);
    for (volatile int i = 0; i < 20; i++)
        if (!sigsetjmp(back, 1)) divided(i, i % 3);
    handle(SIGFPE, faults, SA_NODEFER);
    for (volatile int i = 0; i < 6; i++)
        if (!sigsetjmp(back, 1)) divided(i, i % 2);
    page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* A debugger that takes the program's own pages away must be able to let it have them back. */
    struct sigaction action = {.sa_sigaction = repairs, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    for (mode = 0; mode < 2; mode++)
        for (volatile unsigned i = 0; i < 5; i++) {
            mprotect(page, 4096, PROT_NONE);
            loaded(page, i);
        }
    sent();
    printf("%d\n", sink);
    fflush(stdout);
    handle(SIGSEGV, SIG_DFL, 0);
    if (argc > 1 && !strcmp(argv[1], "raises")) handle(SIGSEGV, raises, 0);
    if (argc > 1 && !strcmp(argv[1], "returns")) handle(SIGSEGV, returns, SA_RESETHAND);
    if (argc > 1) compared(nowhere, 3);
    return 0;
}
