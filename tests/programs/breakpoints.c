/* Breakpoints of the program's own, which its handler passes: in front of what aligns a loop, at the start of a function and of
   a block without room for anything but a trap. All lines with a mark run. */
#include <signal.h>
#include <stdio.h>

static volatile int passed, sum;
static void pass(int signal) { (void)signal; passed++; }

__attribute__((noinline)) static int aligned(int n) {
  __asm__ volatile("int3");
  __asm__ volatile(".p2align 4\n1: addl $3, %1\n decl %0\n jnz 1b" : "+r"(n), "+m"(sum)::"cc", "memory");
  puts("behind"); /* runs */
  return 7;       /* runs */
}

int starts(int), tight(int);
__asm__(".text\n.p2align 4\n.type starts, @function\nstarts: int3\n mov %edi, %eax\n ret\n.size starts, .-starts\n"
        ".p2align 4\n.type tight, @function\ntight: test %edi, %edi\n jz 1f\n inc %edi\n1: int3\n ret\n.size tight, .-tight\n");

int main(void) {
  signal(SIGTRAP, pass);
  int all = aligned(3) + aligned(5) + starts(1) + starts(2); /* runs */
  tight(0);                                                  /* runs */
  tight(2);                                                  /* runs */
  printf("%d %d %d\n", passed, all, sum);                    /* runs */
  return 5;
}
