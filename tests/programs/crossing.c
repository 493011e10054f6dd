/* Two functions of assembly, one of which jumps into the middle of the other, as those of cryptographic libraries do. */
#include <stdio.h>

int into(int), from(int);
__asm__(
    ".text\n"
    ".globl into\n"
    ".type into, @function\n"
    "into: .cfi_startproc\n"
    "  test %edi, %edi\n"
    "  js .Ltail\n"
    "  lea 1(%rdi), %eax\n"
    "  jmp .Lend\n"
    ".Ltail: mov %edi, %eax\n"
    "  neg %eax\n"
    ".Lend: add $3, %eax\n"
    "  cmp $10, %eax\n"
    "  jb .Lsmall\n"
    "  ret\n"
    ".Lsmall: add %eax, %eax\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size into, .-into\n"
    ".globl from\n"
    ".type from, @function\n"
    "from: .cfi_startproc\n"
    "  cmp $5, %edi\n"
    "  ja .Ltail\n"
    "  mov %edi, %eax\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size from, .-from\n");

int main(void) {
  int sum = 0;
  for (int i = -3; i < 5; i++) sum += into(i);
  for (int i = 0; i < 50; i++) sum += from(i);
  printf("%d\n", sum);
  return 0;
}
