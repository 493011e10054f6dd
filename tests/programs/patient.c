/* Does for each letter of its input what the letter says, prints a line for each, and ends with the input:
   a, b, c, d: each something of its own; x: exits with 7; k: kills itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORK(name, start) \
  __attribute__((noinline)) static unsigned name(unsigned n) { \
    unsigned x = start; \
    for (unsigned i = 0; i < n; i++) { \
      if (x & 1) x = x * 3 + 1; else x >>= 1; \
      if (x % 7 == start % 5) x ^= i; \
      switch (x & 3) { case 0: x += start; break; case 1: x ^= 5; break; default: x--; } \
    } \
    return x; \
  }
WORK(first, 11)
WORK(second, 23)
WORK(third, 37)
WORK(fourth, 41)

int main(void) {
  int letter;
  while ((letter = getchar()) != EOF) {
    switch (letter) {
      case 'a': printf("a %u\n", first(500)); break;
      case 'b': printf("b %u\n", second(500)); break;
      case 'c': printf("c %u\n", third(500)); break;
      case 'd': printf("d %u\n", fourth(500)); break;
      case 'x': fflush(stdout); _exit(7);
      case 'k': fflush(stdout); kill(getpid(), SIGKILL); break;
      default: continue;
    }
    fflush(stdout);
  }
  return 0;
}
