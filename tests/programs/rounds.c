/* Loops with one way round, entered and left in all manners. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 5000

static volatile unsigned sink;
static unsigned char bytes[SIZE];
static unsigned long words[SIZE];
struct link { struct link *next; unsigned value; };
static struct link links[SIZE];

/* Up, to a bound; each time it is called, and one by one. */
__attribute__((noinline)) static unsigned up(unsigned long count) {
    unsigned sum = 0;
    for (unsigned long i = 0; i < count; i++) sum = sum * 31 + ((volatile unsigned char *)bytes)[i];
    return sum;
}

/* Down, by more than one. */
__attribute__((noinline)) static unsigned long down(long from) {
    unsigned long sum = 0;
    for (long i = from; i >= 0; i -= 3) sum ^= words[i] * 7;
    return sum;
}

/* Two ways out, one of them in the middle. */
__attribute__((noinline)) static long find(unsigned char what, long count) {
    for (long i = 0; i < count; i++) {
        if (bytes[i] == what) return i;
        sink += i;
    }
    return -1;
}

/* Two pointers, and a way out that depends on both. */
__attribute__((noinline)) static long same(const unsigned char *one, const unsigned char *other) {
    const unsigned char *start = one;
    while (*one && *one == *other) { one++; other++; sink++; }
    return one - start;
}

/* Nothing here changes by a constant. */
__attribute__((noinline)) static unsigned follow(const struct link *link) {
    unsigned sum = 0;
    for (; link; link = link->next) sum += link->value;
    return sum;
}

/* A loop of loops, with a branch between. */
__attribute__((noinline)) static unsigned nested(unsigned long outer, unsigned long inner) {
    unsigned sum = 0;
    for (unsigned long i = 0; i < outer; i++) {
        for (unsigned long j = 0; j < inner; j++) sum = (sum ^ bytes[j]) * 17 + i;
        if (sum & 1) for (long j = inner; j > 0; j -= 2) sum += words[j] * 3;
        else sum++;
    }
    return sum;
}

/* One loop right behind the other, and rounds that depend on the call before. */
__attribute__((noinline)) static unsigned again(unsigned depth, unsigned long count) {
    unsigned sum = 1;
    for (unsigned long i = 0; i < count; i++) sum = sum * 5 + bytes[i];
    for (unsigned long i = count; i; i--) sum = sum * 3 + bytes[i];
    if (depth) sum += again(depth - 1, count / 2 + depth);
    for (unsigned long i = 0; i != count; i += 1) sum ^= bytes[i] << (i & 7);
    return sum;
}

/* Several ways round, of which one is taken most: the others lead back into its middle, where it may also be entered, and
 * one of them passes over a byte. */
__attribute__((noinline)) static unsigned parts(unsigned long count, int late) {
    const volatile unsigned char *at = bytes, *end = bytes + count;
    unsigned sum = 0;
    if (late) goto middle;
    while (at < end) {
        if (*at == 250) { sum = sum * 7 + sink; sink++; }
        sum ^= *at;
    middle:
        sum = sum * 31 + 1;
        if (sum % 1021 == 5) { sum += 77; at += 3; continue; }
        if (sum % 511 == 9) { sink += sum; goto middle; }
        if (sum % 2047 == 8) { sum += sink; goto behind; }
        sum += 3;
    behind:
        at++;
    }
    return sum;
}

static sigjmp_buf back;
static volatile sig_atomic_t handled;
static void leave(int number) { (void)number; handled++; siglongjmp(back, 1); }
static void note(int number) { (void)number; handled++; sink += up(7); }

/* It comes to a page that is not there. */
__attribute__((noinline)) static unsigned run_off(const unsigned char *from) {
    unsigned sum = 0;
    for (const volatile unsigned char *at = from;; at++) {
        if (sum == 77) break;
        sum = sum * 3 + *at;
    }
    return sum;
}

__attribute__((noinline)) static unsigned scan(const volatile unsigned char *from, unsigned long count) {
    unsigned sum = 0;
    for (unsigned long i = 0; i < count; i++) sum = sum * 31 + from[i];
    return sum;
}

/* It comes in the middle of the loop that it calls itself, and makes the page readable that the loop came to. */
static void repair(int number, siginfo_t *what, void *context) {
    (void)number, (void)context;
    sink += scan(bytes, 9);
    handled++;
    if (mprotect((void *)((unsigned long)what->si_addr & ~4095ul), 4096, PROT_READ)) _exit(9);
}

/* So many bytes, behind which there is nothing. */
static const unsigned char *end_of_page(long count) {
    unsigned char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || munmap(page + 4096, 4096)) exit(9);
    return page + 4096 - count;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    for (long i = 0; i < SIZE; i++) { bytes[i] = i % 251 + 1; words[i] = i * 2654435761u; }
    for (long i = 0; i + 1 < SIZE; i++) { links[i].next = &links[i + 7 < SIZE ? i + 7 : i + 1]; links[i].value = i; }
    unsigned long sum = 0;
    if (!strcmp(what, "plain")) {
        for (unsigned long i = 0; i < 20; i++) {
            sum += up(i * i) + down(i * 100) + find(i * 8, i * 40) + follow(&links[i * 50]);
            bytes[i * 9 + 3] = 0;
            sum += same(bytes + i, bytes + 251 + i) + nested(i % 5, i) + again(i % 4, i * 3);
            sum += parts(i * 25, i & 1);
        }
    } else if (!strcmp(what, "often")) {
        unsigned long times = strtoul(arguments[2], 0, 10);
        for (int i = 0; i < 20; i++) sum += up(times);
    } else if (!strcmp(what, "mostly")) {
        sum += parts(strtoul(arguments[2], 0, 10), 1);
    } else if (!strcmp(what, "long")) {
        for (int i = 0; i < 150000; i++) sum += up(3) + up(4);
    } else if (!strcmp(what, "left")) {
        signal(SIGSEGV, leave);
        for (volatile int i = 0; i < 5; i++)
            if (!sigsetjmp(back, 1)) sum += run_off(end_of_page(i * 700));
        for (unsigned long i = 0; i < 20; i++) sum += up(i * 3);
        sum += handled;
    } else if (!strcmp(what, "crashes")) {
        sum += up(100);
        sum += run_off(end_of_page(1000));
    } else if (!strcmp(what, "repaired")) {
        struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO | SA_NODEFER};
        const unsigned char *pages = mmap(0, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaction(SIGSEGV, &action, 0);
        sum += scan(bytes, 20) + scan(pages, 3 * 4096) + scan(pages, 3 * 4096) + handled;
    } else if (!strcmp(what, "noted")) {
        signal(SIGUSR1, note);
        for (int i = 0; i < 50; i++) { sum += up(i); raise(SIGUSR1); sum += down(i); }
    }
    printf("%lu\n", sum);
    return 0;
}
