/* Says its number and works for ever, deep in calls, until somebody ends it. */
#include <stdio.h>
#include <unistd.h>

static volatile unsigned state = 1;

__attribute__((noinline)) static unsigned work(unsigned depth) {
    state = state * 1103515245u + 12345u;
    if (depth == 0)
        return state >> 16;
    if (state & 0x10000)
        return work(depth - 1) + 1;
    return work(depth - 1) ^ 3;
}

int main(void) {
    unsigned sum = 0;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        sum += work(sum % 7);
}
