/* A signal that waits for each thread when that begins: its handler may run before the thread has done anything, or, where that has ended
 * before it is sent, not at all. Prints how often it did, and how often something was called. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static volatile unsigned long handled, calls;
static volatile unsigned sink;
static volatile int is_done;

__attribute__((noinline)) static unsigned work(unsigned rounds) {
    unsigned value = rounds;
    for (unsigned i = 0; i < rounds; i++) {
        if (value & 1) value = value * 3 + i; else value = value / 2 + 1;
        if (value % 7 == 3) sink += i;
    }
    return value;
}

static void handle(int number) {
    (void)number;
    __sync_fetch_and_add(&handled, 1);
    for (int i = 0; i < 5000; i++) work(3);
    __sync_fetch_and_add(&calls, 5000);
}

static void *thread(void *argument) {
    is_done = 1;
    return argument;
}

int main(void) {
    signal(SIGUSR1, handle);
    for (int i = 0; i < 40; i++) {
        pthread_t made;
        unsigned long own = 0;
        is_done = 0;
        pthread_create(&made, 0, thread, 0);
        pthread_kill(made, SIGUSR1);
        while (!is_done) work(3), own++;
        __sync_fetch_and_add(&calls, own);
        pthread_join(made, 0);
    }
    printf("%lu %lu\n", handled, calls);
    return 0;
}
