/* Closes a sandbox that ends whoever makes a system call which the program itself does not need. Its argument says what it
   does there: compute (`alone`, in the system's own strict mode, and `at_length`), run threads, some of which nobody waits for, fork, or give threads
   stacks for handlers; or has a child close it that borrows its memory (`lent`). It says how often `falls` was called. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int close_with(const int *allowed, size_t count) {
  struct sock_filter filter[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  size_t length = 1;
  for (size_t i = 0; i < count; i++) {
    struct sock_filter compare = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = compare, filter[length++] = allow;
  }
  struct sock_filter end = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter[length++] = end;
  struct sock_fprog program = {length, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void say(const char *what, unsigned long value) {
  char line[80];
  int length = snprintf(line, sizeof line, "%s %lu\n", what, value);
  if (write(1, line, length) < 0) syscall(SYS_exit, 99);
}

static __thread unsigned met;
static _Atomic unsigned long *calls;
__attribute__((noinline, noclone)) static int compare(const void *one, const void *other) {
  met++;
  return *(const int *)one - *(const int *)other;
}
__attribute__((noinline, noclone)) static unsigned long falls(unsigned depth, unsigned seed) {
  volatile char room[200];
  int numbers[16];
  ++*calls;
  room[depth % 200] = seed;
  for (int i = 0; i < 16; i++) numbers[i] = (i * 37 + seed) % 64;
  qsort(numbers, 16, sizeof *numbers, compare);
  if (depth == 0) return numbers[3];
  return numbers[depth % 16] + falls(depth - 1, seed * 5 + 1) + (unsigned char)room[depth % 200];
}
static jmp_buf place;
__attribute__((noinline, noclone)) static void leaps(unsigned depth) {
  if (depth == 0) longjmp(place, 7);
  leaps(depth - 1);
  met += depth;
}
static unsigned long work(unsigned seed) {
  unsigned long sum = 0;
  for (unsigned i = 0; i < 20; i++) sum += falls(seed % 7 + i % 5, seed + i);
  return sum + met;
}

static int *volatile nowhere;

/* Ended by a fault, of which the system would not be asked anything in there. */
static int faults(void) {
  say("closed", !prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
  return *nowhere;
}

static int alone(void) {
  say("closed", !prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
  say("work", work(3));
  int came = setjmp(place);
  if (!came) leaps(9);
  say("came", came);
  for (unsigned i = 0; i < 30; i++) met += work(i) % 3;
  say("met", met), say("calls", *calls);
  return syscall(SYS_exit, 3);
}

/* So long that no room suffices that was made before. */
static int at_length(void) {
  say("closed", !prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
  for (unsigned i = 0; i < 250; i++) met += work(i) % 3;
  say("met", met), say("calls", *calls);
  return syscall(SYS_exit, 3);
}

static const int of_threads[] = {
  SYS_write, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_madvise, SYS_clone, SYS_clone3, SYS_set_robust_list,
  SYS_rseq, SYS_rt_sigprocmask, SYS_futex, SYS_exit, SYS_exit_group,
};
static void *thread(void *seed) { return (void *)work((size_t)seed); }
static unsigned long run(unsigned count, unsigned seed) {
  pthread_t threads[8];
  unsigned long sum = 0;
  for (unsigned i = 0; i < count; i++) if (pthread_create(&threads[i], NULL, thread, (void *)(size_t)(seed + i))) _exit(98);
  for (unsigned i = 0; i < count; i++) { void *result; pthread_join(threads[i], &result); sum += (size_t)result; }
  return sum;
}
static pthread_barrier_t done;
static void *left(void *seed) {
  pthread_detach(pthread_self());
  work((size_t)seed);
  pthread_barrier_wait(&done);
  return NULL;
}
static int threads(void) {
  say("before", run(3, 1));
  pthread_barrier_init(&done, NULL, 2);
  say("closed", !close_with(of_threads, sizeof of_threads / sizeof *of_threads));
  for (unsigned i = 0; i < 40; i++) {
    pthread_t one;
    if (pthread_create(&one, NULL, left, (void *)(size_t)i)) _exit(98);
    say("threads", run(1 + i % 8, i));
    pthread_barrier_wait(&done);
  }
  say("calls", *calls);
  return 3;
}

static int forks(void) {
  static const int allowed[] = {SYS_write, SYS_clone, SYS_wait4, SYS_set_robust_list, SYS_rt_sigprocmask, SYS_exit_group};
  say("closed", !close_with(allowed, sizeof allowed / sizeof *allowed));
  for (unsigned i = 0; i < 5; i++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) { say("child", work(i)); _exit(i); }
    wait4(child, &status, 0, NULL);
    say("status", status);
  }
  say("calls", *calls);
  return 3;
}

/* A child that has its parent's memory closes its own sandbox. */
static int lent(void) {
  int status = 0;
  pid_t child = vfork();
  if (child == 0) _exit(close_with(of_threads, sizeof of_threads / sizeof *of_threads) ? 1 : 5);
  waitpid(child, &status, 0);
  say("status", status), say("threads", run(3, 1)), say("calls", *calls);
  return 3;
}

/* Threads that name stacks for handlers, and take memory back that may hold one. */
static void *handling(void *seed) {
  char *room = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {.ss_sp = room, .ss_size = 1 << 16}, none = {.ss_flags = SS_DISABLE};
  int failed = sigaltstack(&stack, NULL);
  unsigned long sum = work((size_t)seed);
  if ((size_t)seed % 2) failed |= sigaltstack(&none, NULL);
  munmap(room, 1 << 16);
  return (void *)(sum + failed);
}
static int stacks(void) {
  int allowed[64];
  memcpy(allowed, of_threads, sizeof of_threads);
  size_t count = sizeof of_threads / sizeof *of_threads;
  allowed[count++] = SYS_sigaltstack;
  static char early[1 << 16];
  stack_t stack = {.ss_sp = early, .ss_size = sizeof early};
  say("named", !sigaltstack(&stack, NULL));
  say("before", run(1, 1));
  say("closed", !close_with(allowed, count));
  for (unsigned i = 0; i < 10; i++) {
    pthread_t one, other;
    void *first, *second;
    if (pthread_create(&one, NULL, handling, (void *)(size_t)i)) _exit(98);
    if (pthread_create(&other, NULL, handling, (void *)(size_t)(i + 1))) _exit(98);
    pthread_join(one, &first), pthread_join(other, &second);
    say("handling", (size_t)first + (size_t)second);
  }
  say("calls", *calls);
  return 3;
}

int main(int count, char **arguments) {
  calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const char *what = count > 1 ? arguments[1] : "";
  if (!strcmp(what, "alone")) return alone();
  if (!strcmp(what, "faults")) return faults();
  if (!strcmp(what, "at_length")) return at_length();
  if (!strcmp(what, "threads")) return threads();
  if (!strcmp(what, "forks")) return forks();
  if (!strcmp(what, "lent")) return lent();
  if (!strcmp(what, "stacks")) return stacks();
  return 96;
}
