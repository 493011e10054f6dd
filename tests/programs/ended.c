/* Ends in the midst of what needs no witness: by a fault, in a handler of it, by a signal of its own, or by a system call of its own. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile int sink;
int *volatile nowhere;

APART static void before(int n) {
    sink += n;
}

APART static void after(int n) {
    sink -= n;
}

APART static void by_call(void) {
    for (;;) {
        long ignored;
        __asm__ volatile("syscall" : "=a"(ignored) : "a"(231L), "D"(7L) : "rcx", "r11", "memory");
        after(1);
    }
}

APART static int faults(int n) {
    before(n);
    *nowhere = n;
    after(n);
    after(n + 1);
    return sink;
}

static void leaves(int number) {
    _exit(number);
}

int main(int count, char **words) {
    (void)count;
    if (!strcmp(words[1], "handled"))
        signal(SIGSEGV, leaves);
    if (!strcmp(words[1], "call"))
        by_call();
    printf("%d\n", faults(3));
    after(0);
    return 0;
}
