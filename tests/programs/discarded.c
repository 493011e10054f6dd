// A function that the linker throws away, and that is longer than the way from address 0 to the program's code: what was
// put into it in place of a call lies, by its debug information, where other functions are.
#define FOUR(what) what what what what

__attribute__((always_inline)) static inline int discarded_body(volatile int *p) {
  int x = 1;
  FOUR(FOUR(FOUR(FOUR(FOUR(x += *p * 7; *p = x ^ 5;)))))
  return x;
}

int discarded(volatile int *p) { return discarded_body(p); }

__attribute__((always_inline)) static inline int kept_body(volatile int *p) {
  *p += 2;
  return *p;
}

int main(int argc, char **argv) {
  (void)argv;
  volatile int value = argc;
  return kept_body(&value) - 3;
}
