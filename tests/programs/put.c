/* Bodies that are put in place of calls: behind each line stands how often it is executed, in all copies together. */
#include <stdio.h>
#include <stdlib.h>
#define PUT static inline __attribute__((always_inline))

static volatile int sink;

PUT int halve(int number) {
  if (number & 1)              /* 330 */
    number = sink + number;    /* 152 */
  return number / 2;
}

/* One body in another, and twice in one line. */
PUT int both(int number) {
  sink = number;               /* 110 */
  return halve(number) + halve(sink + 1); /* 110 */
}

int main(int count, char **arguments) {
  volatile int turns = 100 + (count > 9);
  int sum = 0;
  (void)arguments;
  for (int i = 0; i < turns; i++) {
    sum += both(i);            /* 100 */
    if (i % 10 == 0)
      sum ^= both(i / 2);      /* 10 */
    sink = halve(sum + 4096);  /* 100 */
  }
  for (int i = 0; i < 10; i++)
    sink = halve(sink + i);
  printf("%d\n", sum);         /* 1 */
  return 0;
}
