/* A library that programs load after their start: a constructor, branches, a destructor. */
#include <stdio.h>

static int opened;

__attribute__((constructor)) static void begin(void) { opened += 1; }
__attribute__((destructor)) static void end(void) { opened -= 1; }

#ifdef CRASHES
/* What is behind the call is executed elsewhere where calls are observed. */
static int *volatile nowhere;
__attribute__((noinline, noclone)) static int behind_a_call(int x) { return nowhere[x & 1] + x; }
#define BEHIND(x, count) if (count > 5) x += behind_a_call(x) + *nowhere
#else
#define BEHIND(x, count)
#endif

__attribute__((noinline)) static int half(int x) { return x % 2 ? 3 * x + 1 : x / 2; }

int steps(int x) {
  int count = 0;
  while (x > 1 && count < 500) {
    x = half(x);
    BEHIND(x, count);
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
