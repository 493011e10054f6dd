/* A program with a bug behind a jump by a table, where no branch tells which way it went. Compiled with RIGHT it has none. */

#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int bent(int which, int number) {
    switch (which) {
    case 0:
        return number > 3 ? number : 3;
    case 1:
        return number * 5 - which;
    case 2:
        return number < 9 ? number + 1 : number / 3;
    case 3:
#ifndef RIGHT
        if (number == 7) {
            return 1000;
        }
#endif
        return number ^ 21;
    case 4:
        return number % 11;
    case 5:
        return number << 2;
    case 6:
        return 40 - number;
    default:
        return which;
    }
}

/* What all cases run, with branches of its own. */
__attribute__((noinline)) static int busy(int number) {
    int sum = 0;
    for (int i = 0; i < number; i++) {
        if (i % 3 == 0) {
            sum += i;
        } else if (i % 5 == 0) {
            sum -= i;
        }
        if (sum > 50) {
            sum /= 2;
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    int sum = busy(argc * 7);
    if (argc > 2) {
        sum += bent(atoi(argv[1]), atoi(argv[2]));
    }
    printf("%d\n", sum);
    return 0;
}
