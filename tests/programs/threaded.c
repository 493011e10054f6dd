/* Direct threaded code: instructions hold the labels that they go to; and a call of a pointer at the end of the function that has these
   labels, which compilers make a jump. */
#include <stdio.h>

typedef int function(int);

__attribute__((noinline)) static int seven(int x) { return x + 7; }
__attribute__((noinline)) static int negative(int x) { return x > 4 ? x : -x; }

struct instruction { void *label; long operand; };

__attribute__((noinline)) static int run(int value, function **ends, int start) {
  static struct instruction program[] = {
      {&&add, 1}, {&&multiply, 3}, {&&add, 5}, {&&done, 0}, {&&multiply, 2}, {&&done, 1}};
  struct instruction *at = program + start;
  goto *at->label;
add:
  value += at->operand;
  at++;
  goto *at->label;
multiply:
  value *= at->operand;
  at++;
  if (value > 500) value %= 77;
  goto *at->label;
done:
  if (at->operand) return value;
  return ends[value & 1](value);
}

int main(void) {
  function *ends[2] = {seven, negative};
  int sum = 0;
  for (int i = 0; i < 12; i++) sum += run(i, ends, i % 6);
  printf("%d\n", sum);
  return 0;
}
