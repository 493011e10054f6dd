/* Ways of control that no compiler makes: a function of the program's own that returns twice, one by a name that says so and that
   leads there, one that branches before it keeps anything, one that leads there, and functions that run on into the next one. */
#include <stdio.h>

long save_here(long *) __attribute__((returns_twice));
long own_SetJmp(long *) __attribute__((returns_twice));
long branching(long *) __attribute__((returns_twice));
long leading(long *) __attribute__((returns_twice));
void go_there(long *) __attribute__((noreturn));
int first(int);
int second(int);
int third(int);

__asm__(".text\n"
        ".globl save_here\n.type save_here, @function\n"
        "save_here: mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r12, 16(%rdi); mov %r13, 24(%rdi)\n"
        "mov %r14, 32(%rdi); mov %r15, 40(%rdi)\n"
        "lea 8(%rsp), %rdx; mov %rdx, 48(%rdi); mov (%rsp), %rdx; mov %rdx, 56(%rdi)\n"
        "xor %eax, %eax; ret\n"
        ".size save_here, . - save_here\n"
        ".globl own_SetJmp\n.type own_SetJmp, @function\n"
        "own_SetJmp: xor %ecx, %ecx; jmp save_here\n"
        ".size own_SetJmp, . - own_SetJmp\n"
        ".globl branching\n.type branching, @function\n"
        "branching: movl $1, 60(%rdi); test $1, %edi; je 1f; movl $2, 60(%rdi)\n"
        "1: mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r12, 16(%rdi); mov %r13, 24(%rdi)\n"
        "mov %r14, 32(%rdi); mov %r15, 40(%rdi)\n"
        "lea 8(%rsp), %rdx; mov %rdx, 48(%rdi); mov (%rsp), %rdx; mov %rdx, 56(%rdi)\n"
        "xor %eax, %eax; ret\n"
        ".size branching, . - branching\n"
        ".globl leading\n.type leading, @function\n"
        "leading: xor %ecx, %ecx; jmp branching\n"
        ".size leading, . - leading\n"
        ".globl go_there\n.type go_there, @function\n"
        "go_there: mov $1, %eax; mov (%rdi), %rbx; mov 8(%rdi), %rbp; mov 16(%rdi), %r12; mov 24(%rdi), %r13\n"
        "mov 32(%rdi), %r14; mov 40(%rdi), %r15; mov 48(%rdi), %rsp; jmp *56(%rdi)\n"
        ".size go_there, . - go_there\n"
        /* Into the next one, from its only way and from one of two. */
        ".globl first\n.type first, @function\n"
        "first: lea 1(%rdi), %edi; test $1, %edi; je 1f; add $100, %edi; add $100, %edi; imul $77777, %edi, %edi\n"
        "1: xor $3333333, %edi; add $11111111, %edi; add $11111111, %edi\n"
        ".size first, . - first\n"
        ".globl second\n.type second, @function\n"
        "second: nop; lea 100000(%rdi, %rdi), %eax; add $11111111, %eax; test $8, %eax; jne 2f; ret\n"
        "2: sub $3333333, %eax; imul $77777, %eax, %edi\n"
        ".size second, . - second\n"
        ".globl third\n.type third, @function\n"
        "third: lea 7777777(%rdi), %eax; xor $1234567, %eax; ret\n"
        ".size third, . - third\n");

static long kept[4][8];

__attribute__((noinline)) static void fail(int x, int which) {
    if (x & 1)
        go_there(kept[which]);
}

__attribute__((noinline)) static int saved(int x) {
    volatile int result = 0;
    if (x > 5)
        result = 100;
    if (save_here(kept[0]) == 0) {
        fail(x, 0);
        result += x;
    } else {
        result -= 1;
    }
    return result;
}

#define SAVED(name, save, which)                              \
    __attribute__((noinline)) static int name(int x) {        \
        volatile int result = 2 * which + 1;                  \
        if (save(kept[which]) == 0) {                         \
            fail(x, which);                                   \
            result += x;                                      \
        } else if (x > 3) {                                   \
            result -= 1;                                      \
        }                                                     \
        return result;                                        \
    }
SAVED(saved_by_name, own_SetJmp, 1)
SAVED(saved_by_branching, branching, 2)
SAVED(saved_by_leading, leading, 3)

int main(void) {
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += saved(i) + 3 * saved_by_name(i) + 5 * saved_by_branching(i) + 7 * saved_by_leading(i) + first(i) + second(i) + third(i);
    printf("%d\n", sum);
    return 0;
}
