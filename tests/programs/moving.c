/* Moves part of its text to memory of its own, as programs do that want it on huge pages: copies it, maps new memory in its place,
   copies it back and makes that executable; or (REMAPPED) moves the copy there, once that is executable. Then it runs code there that has not run before. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MOVED __attribute__((section("moved"), noinline))

/* Short blocks and a switch, half of which run before. */
MOVED __attribute__((aligned(4096))) static unsigned pick(unsigned x) {
  switch (x % 7) {
    case 0: return x ^ 1;
    case 1: return x ? x - 1 : 0;
    case 2: return x * 3;
    case 3: return ~x;
    case 4: return x >> 1;
    default: return x + 2;
  }
}
MOVED static unsigned work(unsigned from, unsigned to) {
  unsigned sum = 0;
  for (unsigned i = from; i < to; i++) {
    unsigned x = pick(i);
    if (x & 1) sum += x; else if (x & 2) sum ^= x; else sum -= i;
    if (sum > 1000000u) sum %= 977;
  }
  return sum;
}
/* Thousands of blocks of two bytes, most of which only a trap tells of. */
MOVED static unsigned dense(unsigned x) {
  __asm__ volatile("test %0, %0\n.rept 6000\n1: jz 1f\n.endr\n1:" : "+r"(x));
  return x + 1;
}
MOVED static unsigned last(unsigned x) { return x & 4 ? x * 5 : x - 9; }

extern char __start_moved, __stop_moved;

int main(void) {
  printf("%u\n", work(0, 3));
  char *start = (char *)((uintptr_t)&__start_moved + 4095 & ~4095UL);
  size_t length = (&__stop_moved - start) & ~4095UL;
  char *copy = mmap(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, start, length);
#ifdef REMAPPED
  if (mprotect(copy, length, PROT_READ | PROT_EXEC)) return 99;
  if (mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start) != start) return 98;
#else
  if (mmap(start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != start) return 98;
  memcpy(start, copy, length);
  if (mprotect(start, length, PROT_READ | PROT_EXEC) || munmap(copy, length)) return 99;
#endif
  printf("%zu pages, %u\n", length >> 12, work(0, 60));
  printf("%u %u\n", dense(3), dense(0));
  printf("%u %u\n", last(4), last(9));
  return 5;
}
