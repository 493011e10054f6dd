// Handlers that look where their signals came, and act on it.
#include <csignal>
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <initializer_list>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline))

struct Fault { int signal; };

// Not deferred: a debugger that takes the program's own pages away must be able to let it have them back.
static void handle(int signal, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(signal, &action, nullptr)) abort();
}

// A fault becomes an exception, which passes functions and leaves what they have cleaned up.
static void throws(int signal, siginfo_t *, void *) { throw Fault{signal}; }
static int alive;
struct Counted { Counted() { alive++; } ~Counted() { alive--; } };
APART static int reads(int *volatile place) { Counted one; return *place; }
APART static int divides(volatile int a, volatile int b) { Counted one; return a / b; }
template <typename F> APART static int caught(F faults) {
    try { return faults(); } catch (Fault &fault) { return -fault.signal; }
}
static void as_exceptions() {
    handle(SIGSEGV, throws);
    handle(SIGFPE, throws);
    int seven = 7, sum = 0;
    for (int i = 0; i < 4; i++)
        sum += caught([&] { return reads(&seven); }) + caught([] { return reads(nullptr); })
             + caught([] { return divides(9, 3); }) + caught([i] { return divides(i, 0); });
    printf("exceptions: %d, alive %d\n", sum, alive);
}

// Who called whom is told from within a handler.
static sigjmp_buf after;
static void names(int, siginfo_t *, void *) {
    void *frames[32];
    int count = backtrace(frames, 32);
    for (int i = 0; i < count; i++) {
        Dl_info info;
        const char *name = dladdr(frames[i], &info) && info.dli_sname ? info.dli_sname : "?";
        printf(" %s", strstr(name, "libc_start") ? "start" : name);
        if (!strcmp(name, "main")) break;
    }
    printf("\n");
    siglongjmp(after, 1);
}
extern "C" APART int inner(int *volatile place) { return *place + 1; }
extern "C" APART int outer(int *volatile place) { return inner(place) + 1; }
static void as_names() {
    void *warm[1];
    backtrace(warm, 1);
    handle(SIGSEGV, names);
    if (!sigsetjmp(after, 1)) outer(nullptr);
}

// The fault is looked up by its instruction, which is passed over, or goes on elsewhere.
extern "C" const char faults_here[], behind_it[], instead[];
static int passed;
static void passes(int, siginfo_t *, void *context) {
    greg_t &place = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (place != (greg_t)faults_here) _exit(4);
    place = (greg_t)(passed++ & 1 ? instead : behind_it);
}
APART static int guarded(int *place) {
    int value = 5;
    __asm__ volatile(
        ".globl faults_here, behind_it, instead\n"
        "faults_here: movl (%1), %0\n"
        "behind_it: addl $3, %0\n"
        "jmp 1f\n"
        "instead: movl $100, %0\n"
        "1:"
        : "+r"(value) : "r"(place) : "memory", "cc");
    return value;
}
static void as_places() {
    handle(SIGSEGV, passes);
    int one = 1;
    for (int i = 0; i < 4; i++) printf("guarded: %d %d\n", guarded(&one), guarded(nullptr));
}

// The same instruction once more, once there is memory.
static char *page;
static void gives(int, siginfo_t *, void *) {
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE)) abort();
}
APART static int stored(char *place, int i) { return place[i] += i; }
static void as_memory() {
    page = (char *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, gives);
    int sum = 0;
    for (int i = 0; i < 6; i++) {
        sum += stored(page, i);
        mprotect(page, 4096, PROT_NONE);
    }
    printf("memory: %d\n", sum);
}

// Who asks for a disposition is told what was set.
static void other(int) {}
static void as_set() {
    for (int signal : {SIGUSR1, SIGBUS, SIGALRM}) {
        struct sigaction set = {}, got = {}, again = {};
        set.sa_sigaction = names;
        set.sa_flags = SA_SIGINFO | SA_RESTART;
        sigaddset(&set.sa_mask, SIGUSR2);
        sigaction(signal, &set, nullptr);
        sigaction(signal, nullptr, &got);
        sigaction(signal, &got, &again);
        printf("set: %d %d %d %d\n", got.sa_sigaction == names, (got.sa_flags & ~0x04000000) == set.sa_flags,
               sigismember(&got.sa_mask, SIGUSR2), got.sa_restorer == again.sa_restorer);
        printf("was: %d", std::signal(signal, other) == (void (*)(int))names);
        printf(" %d", std::signal(signal, SIG_IGN) == other);
        raise(signal);
        printf(" %d", std::signal(signal, SIG_DFL) == SIG_IGN);
        printf(" %d\n", std::signal(signal, SIG_DFL) == SIG_DFL);
    }
    // Of what the C library or the system change themselves, too.
    for (int signal : {SIGUSR1, SIGBUS}) {
        struct sigaction set = {}, got = {};
        set.sa_handler = other;
        sigaction(signal, &set, nullptr);
        siginterrupt(signal, 0);
        sigaction(signal, nullptr, &got);
        printf("changed: %d %x", got.sa_handler == other, got.sa_flags);
        siginterrupt(signal, 1);
        sigaction(signal, nullptr, &got);
        printf(" %x", got.sa_flags);
        set.sa_flags = SA_RESETHAND;
        sigaction(signal, &set, nullptr);
        raise(signal);
        sigaction(signal, nullptr, &got);
        printf(" %d %x", got.sa_handler == SIG_DFL, got.sa_flags);
        set.sa_handler = SIG_DFL;
        set.sa_flags = SA_RESTART | SA_ONSTACK;
        sigaddset(&set.sa_mask, SIGUSR2);
        sigaction(signal, &set, nullptr);
        sigaction(signal, nullptr, &got);
        printf(" %d %x %d\n", got.sa_handler == SIG_DFL, got.sa_flags, sigismember(&got.sa_mask, SIGUSR2));
    }
}

// Two signals are let in at once, and the handler that runs first throws.
struct Left {};
static volatile int began;
static void first(int) { if (!began++) throw Left(); }
static void second(int) { if (!began++) throw Left(); }
APART static void lets_in() {
    sigset_t none;
    raise(SIGUSR1), raise(SIGUSR2);
    sigemptyset(&none);
    sigsuspend(&none);
}
static void at_once() {
    struct sigaction action = {};
    sigset_t both;
    action.sa_flags = SA_NODEFER;
    action.sa_handler = first;
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = second;
    sigaction(SIGUSR2, &action, nullptr);
    sigemptyset(&both), sigaddset(&both, SIGUSR1), sigaddset(&both, SIGUSR2);
    int caught = 0;
    for (int i = 0; i < 5; i++) {
        began = 0;
        sigprocmask(SIG_BLOCK, &both, nullptr);
        try { lets_in(); } catch (Left) { caught++; }
    }
    sigprocmask(SIG_UNBLOCK, &both, nullptr);
    printf("at once: %d\n", caught);
}

int main(int argc, char **) {
    as_exceptions();
    as_names();
    as_places();
    as_memory();
    as_set();
    // Not for who lets it go on instruction by instruction.
    if (argc > 1) at_once();
    return 0;
}
