/* Two functions whose bodies end alike: GCC makes one of both ends, which belongs to one of them. */
#include <stdio.h>

static volatile int level;

static inline void called(int value) { /* ran */
    level = value * 3;
    puts("an end");
    putchar(value);
    level = 7;
}

static inline void never(int value) { /* missed */
    level = value - 9;
    puts("an end");
    putchar(value);
    level = 7;
}

__attribute__((noinline)) static void either(int which) { /* ran */
    if (which < 50) {
        called(which);
    } else {
        never(which);
    }
}

int main(int count, char **arguments) { /* ran */
    (void)arguments;
    either(count + 9);
    return 0;
}
