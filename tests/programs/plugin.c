/* A library that programs load after their start: a constructor, branches, a destructor. */
#include <stdio.h>

static int opened;

__attribute__((constructor)) static void begin(void) { opened += 1; }
__attribute__((destructor)) static void end(void) { opened -= 1; }

__attribute__((noinline)) static int half(int x) { return x % 2 ? 3 * x + 1 : x / 2; }

int steps(int x) {
  int count = 0;
  while (x > 1 && count < 500) {
    x = half(x);
    count++;
  }
  switch (count % 5) {
    case 0: return count + opened;
    case 1: return count * 3;
    case 2: return ~count;
    case 3: return count ^ 21;
    default: return -count;
  }
}
