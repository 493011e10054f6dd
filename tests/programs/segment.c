/* Keeps something of its own where gs leads, as programs do that run Windows' code. */
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = 4096 };
static unsigned long words[WORDS];

__attribute__((noinline)) static unsigned long word(unsigned long number) {
  unsigned long value;
  __asm__("movq %%gs:(%1), %0" : "=r"(value) : "r"(8 * number));
  return value;
}

__attribute__((noinline)) static unsigned long sum(unsigned long last) {
  unsigned long all = 0;
  for (unsigned long number = 0; number < last; number++) all += number & 1 ? word(number) : 2 * word(number);
  return all;
}

int main(void) {
  for (unsigned long number = 0; number < WORDS; number++) words[number] = 3 * number;
  if (syscall(SYS_arch_prctl, ARCH_SET_GS, words)) return 98;
  printf("%lu\n", sum(WORDS));
  unsigned long changed = 0;
  for (unsigned long number = 0; number < WORDS; number++) changed += words[number] != 3 * number;
  printf("%lu changed\n", changed);
  return 7;
}
