/* Ways into the middle of functions that are hard to see: tables that begin with negative values and that nothing bounds, two of them
   side by side; labels by offsets in a table that may change; labels to which nested functions jump; a function that takes its
   stack in pieces; an answer of the system in a loop. */
#include <stdio.h>
#include <sys/syscall.h>

#define APART __attribute__((noinline, noclone))
#define NEGATIVE(x)                                           \
  switch (x) {                                                \
    case 0: v++;                                              \
    case 1: v <<= 1;                                          \
    case 2: v ^= 1;                                           \
    case 3: v--;                                              \
    case 4: v++;                                              \
    case -1: v--;                                             \
    case -2: v <<= 1;                                         \
    case -3: v++;                                             \
    case -4: v <<= 2;                                         \
    case -5: v--; break;                                      \
    default: __builtin_unreachable();                         \
  }
APART static long one(long x, long v) { NEGATIVE(x) return v; }
APART static long two(long x, long y, long v) {
  switch (x) {
    case 0: v++;
    case 1: v <<= 1;
    case 2: v ^= 1;
    case 3: v--;
    case 4: v += 3; break;
    default: __builtin_unreachable();
  }
  v *= 5;
  NEGATIVE(y)
  return v;
}

APART static int by_offsets(const unsigned char *p) {
  static int offsets[] = {&&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a};
  int s = 1;
  void *q = (char *)&&a + offsets[*p++];
  goto *q;
a: s += 3;
b: s++;
c: s ^= 5;
d: s -= 1;
  if (s < 1000) {
    s *= 2;
    q = (char *)&&a + offsets[*p++];
    goto *q;
  }
e: return s;
}

static volatile int passed, found, all;
APART static void each(int *a, int n, void (*f)(int)) { for (int i = 0; i < n; i++) f(a[i]); }
APART static void find(int *a, int n, int x) {
  __label__ hit;
  void f(int v) { if (v == x) goto hit; }
  each(a, n, f);
  passed++;
hit:
  __asm__ volatile("cld");
  found++;
  all++;
}

/* What the system is asked with is in registers that the instruction does not name. */
APART static long written(long n, const char *text, long length) {
  long sum = 0;
  for (long i = 0; i < n; i++) {
    if (i & 1) {
      long got;
      __asm__ volatile("syscall" : "=a"(got) : "a"(SYS_write), "D"(1), "S"(text), "d"(length) : "rcx", "r11", "memory");
      sum += got;
    } else if (i % 3 == 0) {
      sum ^= length;
    }
  }
  return sum;
}

int main(void) {
  static const int order[] = {-2, -1, -3, 0, -5, 1, 2, 3, -4, -1, -2};
  static const unsigned char code[] = {3, 0, 1, 2, 1, 0, 3, 2, 1, 0, 0, 1, 3, 4};
  int numbers[] = {5, 3, 8};
  setvbuf(stdout, 0, _IONBF, 0);
  for (int i = 0; i < 11; i++) printf(" %ld %ld", one(order[i], i), two(i % 5, order[i], i));
  printf("\n%d %d\n", by_offsets(code), by_offsets(code + 5));
  for (int i = 0; i < 7; i++) find(numbers, 3, i);
  printf("%d %d %d\n", passed, found, all);
  printf("%ld\n", written(9, "hello\n", 6));
  return 8;
}
