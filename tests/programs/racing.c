/* Thousands of blocks, in groups; threads meet before each group, so that its first hits race. Arguments:
   threads, groups, and whether to name each group when it is done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK(n) \
  if ((x ^ n) & 4) x = x * 5 + n; else if (x & 1) x -= n; else x ^= x << 3; \
  switch ((x + n) & 7) { case 0: x += 3; break; case 1: x = ~x; break; case 2: x <<= 1; break; \
    case 5: x ^= 77; break; default: x++; }
#define TEN(n) BLOCK(n##0) BLOCK(n##1) BLOCK(n##2) BLOCK(n##3) BLOCK(n##4) BLOCK(n##5) BLOCK(n##6) \
  BLOCK(n##7) BLOCK(n##8) BLOCK(n##9)
#define GROUP(n) __attribute__((noinline)) static unsigned group##n(unsigned x) { TEN(n) return x; }
#define GROUPS(n) GROUP(n##1) GROUP(n##2) GROUP(n##3) GROUP(n##4) GROUP(n##5) GROUP(n##6) GROUP(n##7) GROUP(n##8)
#define NAMES(n) group##n##1, group##n##2, group##n##3, group##n##4, group##n##5, group##n##6, group##n##7, group##n##8,
GROUPS(1) GROUPS(2) GROUPS(3) GROUPS(4)

static unsigned (*const groups[])(unsigned) = {NAMES(1) NAMES(2) NAMES(3) NAMES(4)};
enum { ALL = sizeof groups / sizeof *groups };

static pthread_barrier_t barrier;
static int limit = ALL, naming;

static void *run(void *unused) {
  unsigned sum = 0;
  (void)unused;
  for (int i = 0; i < limit; i++) {
    int last = pthread_barrier_wait(&barrier);
    for (unsigned x = 0; x < 200; x++) sum += groups[i](x * 2654435761u);
    if (naming) pthread_barrier_wait(&barrier);
    if (naming && last) {
      char line[16];
      int length = snprintf(line, sizeof line, "%d\n", i);
      if (write(1, line, length) < 0) _exit(1);
    }
  }
  return (void *)(long)sum;
}

int main(int count, char **arguments) {
  int threads = count > 1 ? atoi(arguments[1]) : 1;
  if (count > 2) limit = atoi(arguments[2]);
  naming = count > 3;
  pthread_t thread[64];
  pthread_barrier_init(&barrier, 0, threads);
  for (int i = 0; i < threads; i++) pthread_create(&thread[i], 0, run, 0);
  for (int i = 0; i < threads; i++) {
    void *sum;
    pthread_join(thread[i], &sum);
    printf("%u\n", (unsigned)(long)sum);
  }
  return 0;
}
