/* A program that is told of each of its own instructions in front of which it is, with the stack pointer that it has there, and the
   frame pointer if it is one: by the processor's trap flag, whose signal a handler of its own takes. It writes them to the file that it is
   named, in pairs, and says how often the signal's cause named another instruction. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

extern const char __executable_start[], etext[];

static uint64_t pairs[1 << 20][2];
static size_t count, others;
static uintptr_t top;

static void told(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t place = registers[REG_RIP], start = (uintptr_t)__executable_start;
    if (place < start || place >= (uintptr_t)etext || count == sizeof pairs / sizeof *pairs) return;
    others += (uintptr_t)info->si_addr != place;
    pairs[count][0] = place - start;
    uintptr_t stack = top - registers[REG_RSP], frame = top - registers[REG_RBP];
    pairs[count++][1] = stack | (frame < 1 << 16 ? frame << 32 : 0);
}

/* Both keep off the red zone. */
#define STEP "lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
#define GO "lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp"

static volatile unsigned sink;

/* A leaf, whose values lie below the stack pointer. */
__attribute__((noinline)) static unsigned leaf(unsigned value) {
    volatile unsigned parts[8];
    for (unsigned i = 0; i < 8; i++) parts[i] = value >> (4 * i) & 15;
    unsigned sum = 0;
    for (unsigned i = 0; i < 8; i++) sum += parts[i] % 3 ? parts[i] : sink;
    return sum;
}

/* Flags and registers are in use from block to block. */
__attribute__((noinline)) static unsigned long mixed(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                                                     unsigned long e, unsigned long f) {
    unsigned long all = 0;
    for (unsigned i = 0; i < 12; i++) {
        unsigned char carried = __builtin_add_overflow(a, b ^ i, &a);
        if (carried) c += d; else c ^= e;
        if (a & 1) d += f; else if (b & 4) e -= a; else f ^= c;
        b = b * 3 + carried;
        all += a ^ b ^ c ^ d ^ e ^ f;
    }
    return all;
}

__attribute__((noinline)) static unsigned chosen(unsigned which) {
    switch (which) {
    case 0: return sink + 3;
    case 1: return leaf(which + 7);
    case 2: sink ^= 5; return 2;
    case 3: return which * sink;
    case 4: sink += 9; return leaf(sink);
    case 5: return 11;
    default: return sink;
    }
}

__attribute__((noinline)) static unsigned tree(unsigned depth, unsigned number) {
    if (!depth) return number & 1 ? leaf(number) : number;
    unsigned below = tree(depth - 1, 2 * number);
    return below + tree(depth - 1, 2 * number + 1);
}

static unsigned (*volatile by_pointer)(unsigned, unsigned) = tree;

/* In the end another function follows in its place. */
__attribute__((noinline)) static unsigned followed(unsigned depth) {
    sink += depth;
    return by_pointer(depth, 1);
}

__attribute__((noinline)) static void room(unsigned size) {
    volatile char some[size];
    some[0] = size, some[size - 1] = sink;
    sink += some[0] + chosen(size & 7);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = told, .sa_flags = SA_SIGINFO};
    if (argc < 2 || sigaction(SIGTRAP, &action, 0)) return 2;
    top = (uintptr_t)__builtin_frame_address(0);
    __asm__ volatile(STEP ::: "memory", "cc");
    for (unsigned i = 0; i < 8; i++) sink += chosen(i);
    sink += mixed(1, ~0ul, 3, 4, 5, 6);
    sink += followed(3);
    for (unsigned i = 1; i < 40; i += 7) room(i);
    __asm__ volatile(GO ::: "memory", "cc");
    FILE *file = fopen(argv[1], "w");
    if (!file || fwrite(pairs, sizeof *pairs, count, file) != count || fclose(file)) return 3;
    printf("%u, %zu, %d\n", sink, others, count < sizeof pairs / sizeof *pairs);
    return 0;
}
