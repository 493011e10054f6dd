/* Faults in a function whose code was put into that of others. */
#include <stddef.h>

static volatile int depth;

#define INTO_CALLER static inline __attribute__((always_inline))

INTO_CALLER void innermost(volatile int *where) {
    depth++;
    *where = depth; /* the fault */
}

INTO_CALLER void middle(volatile int *where) {
    depth++;
    innermost(where); /* the call of innermost */
    depth++;
}

__attribute__((noinline, noclone)) static void outer(volatile int *where) {
    depth++;
    middle(where); /* the call of middle */
    depth++;
}

INTO_CALLER void start(void) {
    outer(NULL); /* the call of outer */
    depth++;
}

int main(void) {
    start(); /* the call of start */
    return depth;
}
