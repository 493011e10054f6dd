// Gives up where it finds 13: what it does then, no other run does.
#include <stdio.h>
#include <stdlib.h>

static int __attribute__((noinline)) lines_of(int number) {
    int lines = 0;
    for (int at = 0; at < number; at++)
        lines += at % 3 == 0;
    return lines;
}

static void __attribute__((noinline)) explain(int number) {
    if (lines_of(number) > 4)
        puts("many lines");
    if (number > 10)
        puts("a large number");
}

static void __attribute__((noinline, noreturn)) give_up(int number) {
    explain(number);
    exit(number > 0 ? 3 : 4);
}

static int __attribute__((noinline)) weigh(int number) {
    if (number % 2 == 1)
        if (number > 12 && number < 14)
            give_up(number);
    return number % 5 > 2 ? 2 * number : number;
}

int main(int count, char **words) {
    int sum = 0;
    for (int at = 1; at < count; at++)
        sum += weigh(atoi(words[at]));
    printf("%d\n", sum);
    return 0;
}
