/* Crashes in as many ways as it is told to. Frames are main, outer, inner, and what each way adds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int depth;
static volatile int *volatile nowhere;
static volatile int zero;
static sigjmp_buf back;

#define APART __attribute__((noinline, noclone))

APART static int write_nowhere(int n) {
    *nowhere = n; /* the fault */
    return n + 1;
}

APART static int divide(int n) {
    return n / zero; /* the division */
}

APART static int no_instruction(int n) {
    __asm__ volatile("ud2"); /* no instruction */
    return n;
}

static int (*volatile no_function)(int);

APART static int call_nowhere(int n) {
    return no_function(n) + 1; /* the call of nothing */
}

APART static int past_the_file(int n) {
    FILE *file = tmpfile();
    char *map = mmap(0, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    return *(volatile char *)map + n; /* past the file */
}

APART static int overflow(int n) {
    volatile char frame[512];
    frame[0] = n;
    return overflow(n + 1) + frame[0]; /* the recursion */
}

APART static int give_up(int n) {
    if (n >= 0)
        abort(); /* the end */
    return n;
}

static void note(int number) {
    static const char said[] = "handled\n";
    (void)!write(1, said, sizeof said - 1);
    (void)number;
}

static void go_on(int number) {
    note(number);
    siglongjmp(back, 1);
}

static void end_by_it(int number, siginfo_t *info, void *context) {
    struct sigaction action;
    note(number);
    (void)info;
    (void)context;
    /* What is there is this very handler, with its flags. */
    sigaction(number, 0, &action);
    if (action.sa_sigaction != end_by_it)
        _exit(9);
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, 0);
    raise(number);
}

static void exit_by_it(int number) {
    note(number);
    _exit(3);
}

static void once(int number) {
    note(number);
    /* Reset by the system: comes back to the fault, which ends the program. */
}

APART static int inner(const char *way) {
    int n = depth++;
    if (!strcmp(way, "divide"))
        n = divide(n);
    else if (!strcmp(way, "ud2"))
        n = no_instruction(n);
    else if (!strcmp(way, "bus"))
        n = past_the_file(n);
    else if (!strcmp(way, "wild"))
        n = call_nowhere(n);
    else if (!strcmp(way, "overflow"))
        n = overflow(n);
    else if (!strcmp(way, "abort"))
        n = give_up(n);
    else
        n = write_nowhere(n);
    return n + depth;
}

APART static int outer(const char *way) {
    int n = inner(way); /* the way down */
    return n + depth;
}

static void handle(void (*simple)(int), void (*full)(int, siginfo_t *, void *), int flags) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    if (full)
        action.sa_sigaction = full;
    else
        action.sa_handler = simple;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, &before);
    /* Nobody was there before. */
    if (before.sa_handler != SIG_DFL)
        _exit(8);
}

static void *thread(void *way) {
    long n = outer(way);
    return (void *)(n + depth);
}

static void own_stack(void) {
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, before;
    sigaltstack(0, &before);
    if (before.ss_flags != SS_DISABLE)
        _exit(7);
    sigaltstack(&stack, 0);
    sigaltstack(0, &before);
    if (before.ss_sp != memory)
        _exit(6);
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "write";
    if (!strcmp(way, "handled")) {
        handle(go_on, 0, 0);
        if (!sigsetjmp(back, 1))
            outer(way);
        if (signal(SIGSEGV, SIG_DFL) != go_on)
            return 5;
        puts("went on");
        return 0;
    }
    if (!strcmp(way, "again"))
        handle(0, end_by_it, SA_SIGINFO);
    if (!strcmp(way, "inside"))
        handle(0, end_by_it, SA_SIGINFO | SA_NODEFER);
    if (!strcmp(way, "exits"))
        handle(exit_by_it, 0, SA_NODEFER);
    if (!strcmp(way, "once"))
        handle(once, 0, SA_RESETHAND);
    if (!strcmp(way, "stack")) {
        own_stack();
        handle(0, end_by_it, SA_SIGINFO | SA_ONSTACK);
    }
    if (!strcmp(way, "thread")) {
        pthread_t id;
        pthread_create(&id, 0, thread, (void *)way);
        pthread_join(id, 0);
    }
    if (!strcmp(way, "ignored"))
        signal(SIGSEGV, SIG_IGN);
    if (!strcmp(way, "blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
    }
    if (!strcmp(way, "fork") && fork())
        return wait(0) < 0;
    if (!strcmp(way, "sent")) {
        kill(getpid(), SIGSEGV);
        pause();
    }
    int code = outer(way); /* the start */
    depth++;
    return code;
}
