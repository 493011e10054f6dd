/* How often each line runs stands behind it. */
#include <stdio.h>

static int odd(int n) {
  int left = n;
  while (left > 1)                      /* 368 */
    left -= 2;                          /* 268 */
  return left;                          /* 100 */
}

int main(void) {
  int sum = 0;                          /* 1 */
  for (int i = 0; i < 100; i++) {
    if (odd(i % 13))                    /* 100 */
      sum += i;                         /* 46 */
    else
      sum -= 1;                         /* 54 */
  }
  if (sum < 0)                          /* 1 */
    puts("never");                      /* 0 */
  printf("%d\n", sum);                  /* 1 */
  return 0;                             /* 1 */
}
