/* Recursion and large frames on a stack of pieces. */
#include <stdio.h>

static long leaf(long x) { return x % 3 ? x + 1 : x * 2; }
static long large(long x) {
  volatile char bytes[3000];
  bytes[x % 3000] = (char)x;
  return bytes[x * 7 % 3000 == 0] + leaf(x);
}
static long deep(long x) {
  volatile char bytes[500];
  bytes[x % 500] = (char)x;
  if (x <= 0) return leaf(1);
  long below = deep(x - 1);
  return below + bytes[x % 500] + large(x) % 7;
}

int main(void) {
  printf("%ld\n", deep(3000) != 0);
  return 9;
}
