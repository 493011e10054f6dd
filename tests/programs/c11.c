/* Threads as C11 has them made. */
#include <stdio.h>
#include <threads.h>

__attribute__((noinline)) static unsigned work(unsigned times) {
  unsigned sum = 0;
  for (unsigned i = 0; i < times; i++) sum += i & 1 ? i : sum >> 1;
  return sum;
}

static int body(void *argument) {
  return (int)(work(*(unsigned *)argument) & 63);
}

int main(void) {
  thrd_t threads[3];
  unsigned times[] = {1000, 2000, 3000};
  for (int i = 0; i < 3; i++)
    if (thrd_create(&threads[i], body, &times[i]) != thrd_success) return 98;
  for (int i = 0; i < 3; i++) {
    int result = 0;
    thrd_join(threads[i], &result);
    printf("%d\n", result);
  }
  return 5;
}
