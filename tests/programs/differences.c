/* Differences of labels, as in gcc's manual ("Labels as Values"): it is not known where the jump leads, and what it leads to may have
   become one block with what is before. */
#include <stdio.h>

static volatile int sum;

__attribute__((noinline)) int run(int kind, int at, const int *steps) {
  static const int own[] = {&&before - &&before, &&middle - &&before, &&end - &&before};
  if (kind < 0) steps = own;
  if (kind < 7) goto *(&&before + steps[at]);
  if (kind < 9) return 3;
before:
  sum += 7;
middle:
  sum += at; /* runs */
  sum *= 3;  /* runs */
  if (sum & 1) return sum;
end:
  return sum - 5;
}

int main(void) {
  int all = 0;
  for (int i = 0; i < 6; i++) all += run(-1, i % 2 + 1, 0);
  printf("%d\n", all);
  return 0;
}
