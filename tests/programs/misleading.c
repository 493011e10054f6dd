/* Its line table names places in the middle of instructions, and calls them starts of statements. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) static unsigned step(unsigned x) {
  unsigned y;
  __asm__ volatile(
      ".loc 1 1001\n .byte 0xb8\n"             /* mov $0x01c39090, %eax */
      ".loc 1 1002\n .byte 0x90\n"
      ".loc 1 1003\n .byte 0x90, 0xc3, 0x01\n"
      ".loc 1 1004\n .byte 0x48, 0x8d\n"       /* lea 0x2(%rax), %rax */
      ".loc 1 1005\n .byte 0x40\n"
      ".loc 1 1006\n .byte 2\n"
      : "=a"(y));
  return x % 3 ? x ^ y : x + y;
}

int main(int count, char **arguments) {
  unsigned sum = 0;
  for (int i = 0; i < 10; i++) sum = step(sum + i + count);
  printf("%u\n", sum);
  return arguments[0] ? 0 : 1;
}
