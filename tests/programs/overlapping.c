/* Instructions that overlap, in a function with bytes that nothing known reaches. */
#include <stdio.h>

int over(int n, int alone, int *where);
__asm__(
    ".text\n.globl over\n.type over, @function\nover:\n"
    "lea .Lnever(%rip), %rax\ntest %esi, %esi\nje 0f\njmp 1f\n"
    "0: .byte 0xf0\n1: addl $3, (%rdx)\nmov (%rdx), %eax\nadd %edi, %eax\nret\n"
    ".Lnever: .long 0x12345678, 0x9abcdef0\n.size over, . - over\n");

int main(void) {
  int where = 1;
  for (int i = 0; i < 4; i++) printf("%d\n", over(i, i & 1, &where));
  return 6;
}
