/* A constant among the code, as libraries of cryptography have them. Its bytes read as an instruction that works with gs. */
#include <stdio.h>

__asm__(
    ".text\n"
    ".balign 16\n"
    "constant:\n"
    "  .byte 0x65, 0x48, 0x8b, 0x04, 0x25, 0x01, 0x00, 0x00, 0x00, 0xc3\n"
    ".balign 16\n");
extern const unsigned char constant[] __asm__("constant");

#ifdef FOREIGN
/* As much code with an unwind entry as without: the module counts as the work of two compilers. */
__asm__(
    ".text\n"
    ".type stated, @function\n"
    "stated:\n"
    "  .cfi_startproc\n"
    "  .rept 8192\n"
    "  leal 1(%rdi), %edi\n"
    "  .endr\n"
    "  movl %edi, %eax\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size stated, . - stated\n"
    ".type unstated, @function\n"
    "unstated:\n"
    "  .rept 8192\n"
    "  leal 1(%rdi), %edi\n"
    "  .endr\n"
    "  movl %edi, %eax\n"
    "  ret\n"
    ".size unstated, . - unstated\n");
extern int stated(int), unstated(int);
#else
static int stated(int number) { return number + 8192; }
static int unstated(int number) { return number + 8192; }
#endif

int main(void) {
  unsigned sum = 0;
  for (int at = 0; at < 10; at++) sum = 31 * sum + constant[at];
  printf("%u %d\n", sum, unstated(stated(0)));
  return 6;
}
