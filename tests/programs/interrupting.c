/* What comes in the middle of paths, so often as the tests state. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned sink;

/* Three paths: of leaves, and of nodes whose number is even or odd. By way of a pointer, so that no compiler
   makes one function of many calls. */
unsigned tree(unsigned depth, unsigned number);
static unsigned (*volatile subtree)(unsigned depth, unsigned number) = tree;
unsigned tree(unsigned depth, unsigned number) {
    if (!depth) return number;
    unsigned sum = subtree(depth - 1, 2 * number);
    if (number & 1) sink += sum; else sink ^= sum;
    return sum + subtree(depth - 1, 2 * number + 1);
}

/* Interrupted in the middle of each second path, by a handler that comes back, and itself runs along another. */
__attribute__((noinline)) void between(unsigned i, int depth) {
    if (i & 1) sink += 3; else sink ^= 7;
    if (!depth) raise(SIGUSR1);
    if (i & 1) sink *= 3; else sink *= 5;
}
static unsigned handled;
__attribute__((noinline)) static void handler(int number) {
    if (number == SIGUSR1) between(++handled, 1);
    sink++;
}

static jmp_buf back;
/* Leaves by each second call. */
__attribute__((noinline)) void jumper(unsigned i) { if (i & 1) longjmp(back, 1); sink++; }
__attribute__((noinline)) void leaper(unsigned i) {
    if (i & 2) sink += 3;
    jumper(i);
    if (i & 4) sink += 5;
}

/* Every second thread ends in the middle. */
__attribute__((noinline)) void leaver(unsigned long i) {
    if (i & 2) sink += 3;
    if (i & 1) pthread_exit(0);
    sink += 5;
}
static void *thread(void *argument) { leaver((unsigned long)argument); return 0; }

__attribute__((noinline)) void ender(unsigned i) {
    if (i & 1) sink += 3;
    if (i == 2) exit(0);
    sink += 5;
}

__attribute__((noinline)) static void leaps(void) {
    for (volatile unsigned i = 0; i < 100; i++) if (!setjmp(back)) leaper(i);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "recursion")) sink += subtree(10, 1);
    else if (!strcmp(what, "signals")) {
        signal(SIGUSR1, handler);
        for (unsigned i = 0; i < 1000; i++) between(i, 0);
    }
    else if (!strcmp(what, "leaps")) leaps();
    else if (!strcmp(what, "leaves")) {
        for (unsigned long i = 0; i < 8; i++) {
            pthread_t made;
            pthread_create(&made, 0, thread, (void *)i);
            pthread_join(made, 0);
        }
    }
    else if (!strcmp(what, "ends")) for (unsigned i = 0; ; i++) ender(i);
    return 0;
}
