/* How often `work` runs is known: whatever ends or begins in the middle of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20000

static volatile unsigned sink;

/* Some branches, so that counts are inferred from others. */
__attribute__((noinline)) void work(unsigned i) {
    if (i & 1) sink += i; else sink ^= i;
    if (i % 3 == 0) sink *= 5;
}

__attribute__((noinline)) static void all(void) {
    for (unsigned i = 0; i < ROUNDS; i++) work(i);
}

static void *thread(void *argument) {
    all();
    if (argument) pthread_exit(argument);
    return 0;
}

static void threads(int count, void *argument) {
    pthread_t made[64];
    for (int i = 0; i < count; i++) pthread_create(&made[i], 0, thread, argument);
    for (int i = 0; i < count; i++) pthread_join(made[i], 0);
}

static sigjmp_buf back;
static void handler(int number) { (void)number; work(1); siglongjmp(back, 1); }

static void wait_for(pid_t child) { int status; waitpid(child, &status, 0); }

/* By system calls of its own, of which one comes back twice and the other never. */
static inline long ask(long number, long argument) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");
    return result;
}
__attribute__((noinline)) void parts(unsigned i) {
    if (i & 1) sink += i;
    pid_t child = ask(SYS_fork, 0);
    if (!child) {
        sink ^= i;
        if (i & 2) sink *= 3;
        ask(SYS_exit_group, 0);
        sink = 7;
    }
    wait_for(child);
}

/* Who comes back to its caller in two processes. */
__attribute__((noinline)) pid_t divide(unsigned i) {
    if (i & 1) sink += i;
    return fork();
}
__attribute__((noinline)) void below(unsigned i) {
    pid_t child = divide(i);
    if (!child) {
        sink ^= i;
        _exit(0);
    }
    wait_for(child);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "once")) all();
    else if (!strcmp(what, "threads")) threads(8, 0);
    else if (!strcmp(what, "left")) threads(8, "left");
    else if (!strcmp(what, "many")) for (int i = 0; i < 200; i++) threads(2, 0);
    else if (!strcmp(what, "forks")) {
        pid_t made[6];
        for (int i = 0; i < 6; i++) if (!(made[i] = fork())) { all(); threads(2, 0); _exit(0); }
        for (int i = 0; i < 6; i++) wait_for(made[i]);
    }
    else if (!strcmp(what, "vfork")) { pid_t child = vfork(); if (!child) { all(); _exit(0); } wait_for(child); all(); }
    else if (!strcmp(what, "terminals")) for (int i = 0; i < 2; i++) {
        int terminal;
        pid_t child = forkpty(&terminal, 0, 0, 0);
        if (!child) { all(); _exit(0); }
        all();
        wait_for(child);
    }
    else if (!strcmp(what, "parts")) for (unsigned i = 0; i < 8; i++) parts(i);
    else if (!strcmp(what, "below")) for (unsigned i = 0; i < 8; i++) below(i);
    else if (!strcmp(what, "leaps")) {
        signal(SIGUSR1, handler);
        for (volatile int i = 0; i < 100; i++) if (!sigsetjmp(back, 1)) raise(SIGUSR1);
    }
    else if (!strcmp(what, "killed")) { all(); raise(SIGKILL); }
    else if (!strcmp(what, "crowd")) {
        int gate[2];
        char none;
        pid_t made[150];
        if (pipe(gate)) return 1;
        for (int i = 0; i < 150; i++) if (!(made[i] = fork())) {
            close(gate[1]);
            work(1);
            if (read(gate[0], &none, 1)) _exit(1);
            work(2);
            _exit(0);
        }
        close(gate[1]);
        for (int i = 0; i < 150; i++) wait_for(made[i]);
    }
    else if (!strcmp(what, "exits")) { if (!fork()) { all(); exit(3); } wait(0); all(); exit(4); }
    printf("%s\n", what);
    return 0;
}
