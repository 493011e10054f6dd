/* Constants among the code, as hand-written assembly has them: named by a label that no symbol table knows, or by a symbol without
   a type. Some look like a call into the middle of an instruction. */
#include <stdio.h>

unsigned look(unsigned);
const char *word(void);
__asm__(
    ".text\n.globl look\n.type look, @function\n.p2align 4\nlook:\n"
    "lea .Ltable(%rip), %rax\nmov (%rax, %rdi, 4), %eax\nret\n.size look, . - look\n"
    ".p2align 5\n"
    ".Ltable: .long 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5\n"
    ".byte 0x55, 0x0f, 0x1f, 0\n"
    ".byte 0xe8\n.long look + 9 - (. + 4)\n.byte 0xc3, 0xcc, 0xcc\n"
    ".globl word\n.type word, @function\nword:\nlea text(%rip), %rax\nret\n.size word, . - word\n"
    ".globl look_again\n.type look_again, @function\nlook_again:\n"
    "lea .Ltable + 16(%rip), %rax\nmov (%rax, %rdi, 4), %eax\nret\n.size look_again, . - look_again\n"
    "text: .asciz \"Push SPs: those that look like code\"\n");
unsigned look_again(unsigned);

int main(void) {
  for (unsigned i = 0; i < 4; i++) printf("%08x ", look(i));
  printf("%08x %s\n", look_again(0), word());
  return 3;
}
