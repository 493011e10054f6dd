/* A library whose functions call one another by the linker's stubs, at the end too: the loader chooses who is called. */
#include <stdio.h>

int last(int), first(int), both(int);

#ifdef LIBRARY
int last(int number) { return number & 1 ? number * 3 : number + 7; }
int first(int number) { return number > 100 ? 5 : last(number + 1); }
int both(int number) { return last(number + 1) + last(number); }
#else
#ifdef INTERPOSED
int last(int number) { return number + 1000; }
#endif
int main(void) {
  int sum = 0;
  for (int number = 0; number < 5; number++) sum += first(number) + both(number);
  printf("%d\n", sum);
  return 0;
}
#endif
