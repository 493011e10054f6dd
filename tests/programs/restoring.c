/* A function that takes its stack pointer from another register at its end, as Pascal's compiler and writers of assembly do:
   before that nobody reads the register, and signals need it all the same. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

__asm__(
    ".text\n.globl f\n.type f, @function\nf:\n.cfi_startproc\n"
    "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n"
    "mov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
    "lea -0x10(%rsp), %rsp\n"
    "mov $39, %eax\nsyscall\n"
    "cmp $0xfffffffffffff001, %rax\njb 1f\n"
    "neg %eax\nmov %eax, %edi\ncall g\nmov $-1, %eax\n"
    "1: mov %rbp, %rsp\npop %rbp\n.cfi_def_cfa 7, 8\nret\n.cfi_endproc\n.size f, . - f\n");
int f(int);
int g(int x) { __asm__ volatile(""); return x; }

static volatile int ticks;
static void tick(int signal) { (void)signal; ticks++; }

int main(void) {
  struct itimerval often = {{0, 100}, {0, 100}};
  signal(SIGALRM, tick);
  setitimer(ITIMER_REAL, &often, 0);
  long done = 0;
  for (long i = 0; i < 20000 || ticks < 100; i++) done += f(i & 7) > 0 && i < 20000;
  printf("%ld\n", done);
  return 4;
}
