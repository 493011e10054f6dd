/* Handlers that send threads elsewhere: past an instruction that faults, and from one thread of the program's own to another one. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define APART __attribute__((noinline))

static volatile unsigned sink;

/* Two bytes long, behind a branch that is as short, with a call or without one behind it. */
unsigned passes(const void *place, unsigned value);
unsigned calls(const void *place, unsigned value);
__attribute__((used)) void called(void) { sink += 3; }
__asm__(".text\n"
        ".type passes, @function\n"
        "passes: mov %esi, %eax; test %eax, %eax; je 1f; add (%rdi), %eax; add $5, %eax\n"
        "1: cmp $7, %eax; jbe 2f; add $2, %eax\n"
        "2: ret\n"
        ".size passes, . - passes\n"
        ".type calls, @function\n"
        "calls: push %rbx; mov %esi, %ebx; test %ebx, %ebx; je 1f; add (%rdi), %ebx; call called; add $5, %ebx\n"
        "1: mov %ebx, %eax; cmp $7, %eax; jbe 2f; add $2, %eax\n"
        "2: pop %rbx; ret\n"
        ".size calls, . - calls\n");

static void passes_over(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* Registers of the thread that waits are put into the context of the one that goes on, each tenth instruction. */
static greg_t waits[NGREG];
static unsigned steps, switches;
static void exchanges(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    greg_t goes_on[NGREG], *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (++steps % 10) return;
    memcpy(goes_on, registers, sizeof goes_on);
    memcpy(registers, waits, sizeof goes_on);
    memcpy(waits, goes_on, sizeof goes_on);
    switches++;
}

APART static unsigned long works(unsigned long rounds, unsigned long seed) {
    unsigned long value = seed;
    for (unsigned long i = 0; i < rounds; i++) {
        if (value & 1) value = value * 3 + 1; else value >>= 1;
        if (value < 3) value += i;
        if ((i & 7) == 3) value ^= seed;
        if (value % 5 == 2) value += 7; else if (value % 3 == 1) value -= 1;
    }
    return value;
}

static volatile unsigned long results[2];
static volatile int is_done;
static char stack[1 << 16];

static void second(void) {
    results[1] = works(300, 77);
    is_done = 1;
    for (;;) sink++;
}

#define STEP "lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
#define GO "lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp"

static void take_turns(void) {
    ucontext_t here;
    getcontext(&here);
    memcpy(waits, here.uc_mcontext.gregs, sizeof waits);
    waits[REG_RIP] = (greg_t)second;
    waits[REG_RSP] = ((greg_t)(stack + sizeof stack) & ~15) - 8;
    waits[REG_EFL] = 0x302;
    waits[REG_CSGSFS] = 0x002b000000000033;
    __asm__ volatile(STEP ::: "memory", "cc");
    results[0] = works(300, 55);
    while (!is_done) sink++;
    __asm__ volatile(GO ::: "memory", "cc");
    printf("%lu %lu %s\n", results[0], results[1], switches > 100 ? "in turns" : "at once");
}

int main(void) {
    struct sigaction past = {.sa_sigaction = passes_over, .sa_flags = SA_SIGINFO};
    struct sigaction turns = {.sa_sigaction = exchanges, .sa_flags = SA_SIGINFO};
    int number = 4;
    unsigned sum = 0;
    if (sigaction(SIGSEGV, &past, 0) || sigaction(SIGTRAP, &turns, 0)) return 2;
    for (volatile unsigned i = 0; i < 12; i++) sum += passes(i % 3 ? &number : 0, i);
    for (volatile unsigned i = 0; i < 12; i++) sum += calls(i % 3 ? &number : 0, i);
    printf("%u %u\n", sum, sink);
    take_turns();
    return 0;
}
