/* Jumps that only an assembler writes: over a prefix, out of and into inline assembly, by a table in
   the text, and a call that only reads the program counter. */
#include <stdlib.h>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

/* As old versions of glibc did: the lock prefix is skipped where there is one thread, so that two
   instructions overlap. */
APART static int over_prefix(int n, int alone) {
  __asm__ volatile(
      "testl %1, %1\n\t"
      "je 0f\n\t"
      "jmp 1f\n\t"
      "0: .byte 0xf0\n\t"
      "1: addl $3, %0"
      : "+m"(n) : "r"(alone) : "cc", "memory");
  return n;
}

APART static int with_goto(int n) {
  __asm__ goto("cmpl $3, %0\n\tjg %l1\n\tje %l2" : : "r"(n) : "cc" : more, same);
  return n;
more:
  return n * 10;
same:
  return -n;
}

APART static int counted_loop(int n) {
  int sum = 0;
  __asm__ volatile("1: addl %1, %0\n\tdecl %1\n\tjnz 1b" : "+r"(sum), "+r"(n) : : "cc");
  return sum;
}

APART static long strings(long n) {
  char from[64] = "bytes", to[64];
  void *a = from, *b = to;
  long count = n;
  __asm__ volatile("cld\n\trep movsb" : "+S"(a), "+D"(b), "+c"(count) : : "memory", "cc");
  __asm__ volatile("jrcxz 1f\n\tmov $7, %%rcx\n1:" : "+c"(count) : : "cc");
  return to[1] + count;
}

/* A function of its own with a table of 32-bit differences among its instructions. */
int table_in_text(int n);
__asm__(
    ".text\n.globl table_in_text\n.type table_in_text, @function\ntable_in_text:\n"
    ".cfi_startproc\n"
    "  cmpl $3, %edi\n  ja 9f\n"
    "  leaq 5f(%rip), %rdx\n  movl %edi, %edi\n  movslq (%rdx,%rdi,4), %rax\n  addq %rdx, %rax\n  jmp *%rax\n"
    "  .p2align 2\n"
    "5: .long 1f-5b, 2f-5b, 3f-5b, 4f-5b\n"
    "1: movl $10, %eax\n  ret\n"
    "2: movl $20, %eax\n  jmp 8f\n"
    "3: movl $30, %eax\n"
    "4: movl $40, %eax\n"
    "8: incl %eax\n  ret\n"
    "9: xorl %eax, %eax\n  ret\n"
    ".cfi_endproc\n.size table_in_text, .-table_in_text\n");

/* Two functions that share their end, and one that runs into the next. */
int runs_into(int n);
int shares(int n);
__asm__(
    ".text\n.globl shares\n.type shares, @function\nshares:\n"
    "  .cfi_startproc\n  testl %edi, %edi\n  jle 1f\n  leal 1(%rdi), %eax\n  ret\n"
    "1: xorl %eax, %eax\n  jmp 2f\n  .cfi_endproc\n.size shares, .-shares\n"
    ".globl runs_into\n.type runs_into, @function\nruns_into:\n"
    "  .cfi_startproc\n  movl %edi, %eax\n  addl %eax, %eax\n  .cfi_endproc\n.size runs_into, .-runs_into\n"
    ".type next_one, @function\nnext_one:\n"
    "  .cfi_startproc\n2: addl $5, %eax\n  ret\n  .cfi_endproc\n.size next_one, .-next_one\n");

/* A call whose return address is popped, not returned to. */
APART static unsigned long program_counter(void) {
  unsigned long pc;
  __asm__ volatile("lea -128(%%rsp), %%rsp\n\tcall 1f\n1: pop %0\n\tlea 128(%%rsp), %%rsp" : "=r"(pc));
  return pc != 0;
}

int jumps(int n);
int jumps(int n) {
  int sum = over_prefix(n, 0) + over_prefix(n, 1) + counted_loop(n) + (int)strings(5) + (int)strings(0);
  for (int i = 0; i < n; i++) sum += with_goto(i) + table_in_text(i) + shares(i) + runs_into(i);
  return sum + (int)program_counter();
}
