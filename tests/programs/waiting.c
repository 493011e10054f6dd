/* Branches that lead into endless loops: one that calls what ends the program, one that calls nothing and is never entered, and one
   that the program is ended in by an alarm. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int turns, way;
static void (*volatile finally)(void);

__attribute__((noinline)) static void step(int code) {
    if (++turns > 3)
        exit(code);
}

__attribute__((noinline, noreturn)) static void serve(int code) {
    if (finally)
        finally();
    for (;;)
        step(code);
}

__attribute__((noinline, noreturn)) static void spin(int code) {
    if (way == 3)
        turns = code;
    else
        turns += 4;
    if (turns == 100)
        puts("never");
    for (;;)
        __asm__ volatile("pause");
}

__attribute__((noinline)) static int either(int code) {
    if (code > 50)
        for (;;)
            __asm__ volatile("pause");
    return code + 1;
}

int main(int count, char **words) {
    (void)words;
    for (int i = -20; i < 20; i++)
        turns += either(i) == 0;
    turns = 0;
    way = either(count);
    if (way == 3) {
        struct itimerval soon = {{0, 0}, {0, 1000}};
        setitimer(ITIMER_VIRTUAL, &soon, 0);
        spin(way);
    }
    serve(7);
}
