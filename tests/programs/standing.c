/* What programs ask of the C library that is stood before, each by its name: what comes of it is printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <time.h>
#include <ucontext.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Thousands of blocks of two bytes, most of them out of reach of any filling: only a trap tells of them. */
#define DENSE(name, repeated)                                                               \
  __attribute__((noinline)) static unsigned name(unsigned x) {                              \
    __asm__ volatile("test %0, %0\n.rept " #repeated "\n1: jz 1f\n.endr\n1:" : "+r"(x));    \
    return x + 1;                                                                           \
  }
DENSE(crowded, 4000) DENSE(narrow, 200)
DENSE(fresh_0, 200) DENSE(fresh_1, 200) DENSE(fresh_2, 200) DENSE(fresh_3, 200) DENSE(fresh_4, 200) DENSE(fresh_5, 200)

static void say(const char *text, unsigned number) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %u\n", text, number);
  if (write(1, line, length) < 0) _exit(99);
}
static void crash(int signal) { (void)signal; _exit(96); }
static void handle_on_stack(int signal) {
  struct sigaction action = {.sa_handler = crash, .sa_flags = SA_ONSTACK};
  sigaction(signal, &action, 0);
}

/* A stack for the handler of a crash, which is smaller than a signal's frame with wide registers, and what is below it. */
static int small_stack(void) {
  static struct { unsigned char below[8192], stack[2048]; } memory;
  stack_t small = {.ss_sp = memory.stack, .ss_size = sizeof memory.stack}, now;
  memset(memory.below, 0x5a, sizeof memory.below);
  say("set", sigaltstack(&small, 0));
  handle_on_stack(SIGSEGV);
  say("new", narrow(0) + narrow(3));
  unsigned changed = 0;
  for (size_t i = 0; i < sizeof memory.below; i++) changed += memory.below[i] != 0x5a;
  say("changed", changed);
  sigaltstack(0, &now);
  say("asked", now.ss_sp == memory.stack);
  return 3;
}

/* A stack for handlers is unmapped while the system still takes it for one. No signal comes, but code that is new. */
static int unmapped_stack(void) {
  enum { SIZE = 65536 };
  void *memory = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {.ss_sp = memory, .ss_size = SIZE};
  say("set", sigaltstack(&stack, 0));
  say("unmapped", munmap(memory, SIZE));
  say("new", narrow(0) + narrow(3));
  return 6;
}

/* The same in a forked process, whose thread has another number. */
static int end_of(pid_t child);
static int forked_unmapped_stack(void) {
  enum { SIZE = 65536 };
  void *memory = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {.ss_sp = memory, .ss_size = SIZE};
  say("set", sigaltstack(&stack, 0));
  pid_t child = fork();
  if (child) return end_of(child);
  say("unmapped", munmap(memory, SIZE));
  say("new", narrow(0) + narrow(3));
  return 6;
}

/* One stack for the handler of a crash, which all threads name. */
enum { THREADS = 8 };
static char shared[65536];
static pthread_barrier_t barrier;
static void *names(void *unused) {
  stack_t all = {.ss_sp = shared, .ss_size = sizeof shared};
  unsigned long sum = 0;
  (void)unused;
  sigaltstack(&all, 0);
  pthread_barrier_wait(&barrier);
  for (unsigned i = 0; i < 20; i++) sum += crowded(0) + crowded(i);
  return (void *)sum;
}
static int shared_stack(void) {
  pthread_t threads[THREADS];
  unsigned long sum = 0;
  void *more;
  handle_on_stack(SIGSEGV);
  pthread_barrier_init(&barrier, 0, THREADS);
  for (int i = 0; i < THREADS; i++) if (pthread_create(threads + i, 0, names, 0)) return 98;
  for (int i = 0; i < THREADS; i++) { pthread_join(threads[i], &more); sum += (unsigned long)more; }
  say("sum", sum);
  return 4;
}

static int end_of(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Where the C library has all signals blocked, or none handled, behind our back; new code runs there. */
static sem_t told;
static void notified(union sigval value) {
  say("notified", value.sival_int + narrow(0) + narrow(3));
  sem_post(&told);
}
static int notified_in_threads(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified, .sigev_value.sival_int = 7};
  struct itimerspec soon = {{0, 0}, {0, 1000}};
  struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 1};
  char name[32];
  timer_t timer;
  sem_init(&told, 0, 0);
  say("timer", timer_create(CLOCK_MONOTONIC, &event, &timer));
  timer_settime(timer, 0, &soon, 0);
  sem_wait(&told);
  snprintf(name, sizeof name, "/tomo-%d", getpid());
  mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &small);
  mq_unlink(name);
  if (queue == (mqd_t)-1) return 97;
  say("queue", mq_notify(queue, &event));
  mq_send(queue, "x", 1, 0);
  sem_wait(&told);
  return 8;
}
static ucontext_t caller, callee;
static char callee_stack[65536];
static void called(void) {
  say("called", narrow(0) + narrow(3));
  swapcontext(&callee, &caller);
  say("again", crowded(0));
  setcontext(&caller);
}
static int masked_contexts(void) {
  getcontext(&callee);
  callee.uc_stack.ss_sp = callee_stack;
  callee.uc_stack.ss_size = sizeof callee_stack;
  sigfillset(&callee.uc_sigmask);
  makecontext(&callee, called, 0);
  swapcontext(&caller, &callee);
  sigfillset(&callee.uc_sigmask);
  swapcontext(&caller, &callee);
  return 9;
}
/* The handler of a signal goes on on its stack once another one was run on. */
static void leaves(int signal) {
  volatile unsigned char kept[6000];
  unsigned changed = 0;
  for (size_t i = 0; i < sizeof kept; i++) kept[i] = 0x5a;
  getcontext(&callee);
  callee.uc_stack.ss_sp = callee_stack;
  callee.uc_stack.ss_size = sizeof callee_stack;
  makecontext(&callee, called, 0);
  swapcontext(&caller, &callee);
  for (size_t i = 0; i < sizeof kept; i++) changed += kept[i] != 0x5a;
  say("changed", changed + signal);
}
static int left_stack(void) {
  stack_t stack = {.ss_sp = shared, .ss_size = sizeof shared};
  struct sigaction action = {.sa_handler = leaves, .sa_flags = SA_ONSTACK};
  say("set", sigaltstack(&stack, 0) | sigaction(SIGUSR1, &action, 0));
  raise(SIGUSR1);
  return 13;
}
extern int __sigpause(int, int);
static void paused(int signal) { say("paused", signal + narrow(0) + narrow(3)); }
static int masked_pause(void) {
  signal(SIGUSR1, paused);
  sighold(SIGUSR1);
  raise(SIGUSR1);
  __sigpause(~(1 << (SIGUSR1 - 1)), 0);
  return 11;
}
/* The same by system calls that are named by number, and what else is stood before of these. */
static unsigned (*const fresh[])(unsigned) = {fresh_0, fresh_1, fresh_2, fresh_3, fresh_4, fresh_5};
static int next;
static void handled(int signal) { say("handled", signal + fresh[next++](0)); }
static int masked_by_number(void) {
  struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } own = {0}, now;
  unsigned long all = ~0UL, others = ~(1UL << (SIGUSR1 - 1)), before;
  struct { unsigned long *set; size_t size; } told = {&others, 8};
  struct epoll_event events[1];
  struct timespec none = {0, 0};
  int queue = epoll_create1(0);
  struct sigaction restoring;
  signal(SIGUSR1, handled);
  sigaction(SIGUSR1, 0, &restoring);
  /* Its restorer is the C library's, of which only the system tells. */
  say("asked", syscall(SYS_rt_sigaction, SIGUSR1, 0, &now, 8) | now.handler != handled);
  own = now;
  own.flags &= ~SA_RESTART;
  own.mask = all;
  say("told", syscall(SYS_rt_sigaction, SIGUSR1, &own, &now, 8));
  say("mask", syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8));
  say("new", narrow(0) + narrow(3));
  raise(SIGUSR1);
  say("suspended", syscall(SYS_rt_sigsuspend, &others, 8) == -1 && errno == EINTR);
  raise(SIGUSR1);
  say("polled", syscall(SYS_ppoll, 0, 0, 0, &others, 8) == -1 && errno == EINTR);
  raise(SIGUSR1);
  say("selected", syscall(SYS_pselect6, 0, 0, 0, 0, 0, &told) == -1 && errno == EINTR);
  raise(SIGUSR1);
  say("waited", syscall(SYS_epoll_pwait, queue, events, 1, -1, &others, 8) == -1 && errno == EINTR);
  say("set", others == ~(1UL << (SIGUSR1 - 1)) && all == ~0UL && told.set == &others);
  /* What is no place for a set or an action is for the system to find. */
  say("no set", syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, 0, 8) == -1 && errno == EFAULT);
  say("no suspension", syscall(SYS_rt_sigsuspend, 8, 8) == -1 && errno == EFAULT);
  say("no selection", syscall(SYS_pselect6, 0, 0, 0, 0, &none, 8) == -1 && errno == EFAULT);
  say("no action", syscall(SYS_rt_sigaction, SIGTRAP, 8, 0, 8) == -1 && errno == EFAULT);
  say("no place", syscall(SYS_rt_sigaction, SIGTRAP, 0, 8, 8) == -1 && errno == EFAULT);
  say("no size", syscall(SYS_rt_sigaction, SIGTRAP, 0, &now, 4) == -1 && errno == EINVAL);
  say("no stack", syscall(SYS_sigaltstack, 8, 0) == -1 && errno == EFAULT);
  say("unblocked", syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8));
  say("taken", syscall(SYS_rt_sigaction, SIGTRAP, &own, &now, 8) | now.handler != SIG_DFL);
  say("new", crowded(0));
  raise(SIGTRAP);
  say("kept", syscall(SYS_rt_sigaction, SIGTRAP, 0, &now, 8) | now.handler != handled);
  say("end", fresh[next](1));
  return 12;
}
static int cleared_handlers(void) {
  struct clone_args told = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
  struct sigaction now;
  signal(SIGTRAP, crash);
  pid_t child = syscall(SYS_clone3, &told, sizeof told);
  if (!child) {
    say("child", narrow(0) + narrow(3));
    sigaction(SIGTRAP, 0, &now);
    _exit(now.sa_handler == SIG_DFL ? 6 : 7);
  }
  say("ended", end_of(child));
  return 10;
}

/* A child of vfork has dispositions of its own, though its memory is its parent's. */
static sigjmp_buf place;
static volatile int *volatile nowhere = (volatile int *)8;
static void jump(int signal) { siglongjmp(place, signal); }
static int vforked(void) {
  struct sigaction now;
  signal(SIGTRAP, jump);
  signal(SIGSEGV, jump);
  pid_t child = vfork();
  if (!child) {
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigaction(SIGTRAP, 0, &now);
    _exit(now.sa_handler == SIG_DFL ? 6 : 7);
  }
  say("ended", end_of(child));
  for (int i = 0; i < 2; i++) {
    int number = sigsetjmp(place, 1);
    if (number) say("handled", number);
    else if (i) *nowhere = 1;
    else raise(SIGTRAP);
  }
  sigaction(SIGTRAP, 0, &now);
  say("asked", now.sa_handler == jump);
  return 5;
}

/* Whether it ignores SIGTRAP, and whether another program finds it ignored, whoever has executed that. */
#define ASKED "grep", "-q", "^SigIgn:.*[13579bdf].$", "/proc/self/status", (char *)0
static char *asking[] = {ASKED};
static const char grep[] = "/bin/grep";
static unsigned finds(int way) {
  pid_t child;
  if (way == 8 || way == 9)
    return (way == 8 ? posix_spawn : posix_spawnp)(&child, grep, 0, 0, asking, environ) ? 97 : end_of(child);
  child = way == 7 ? vfork() : fork();
  if (child) return end_of(child);
  switch (way) {
    case 0: execve(grep, asking, environ); break;
    case 1: execv(grep, asking); break;
    case 2: execvp("grep", asking); break;
    case 3: execvpe("grep", asking, environ); break;
    case 4: execl(grep, ASKED); break;
    case 5: execlp("grep", ASKED); break;
    case 6: execle(grep, ASKED, environ); break;
    case 7: execv(grep, asking); break;
    default: fexecve(open(grep, O_RDONLY | O_CLOEXEC), asking, environ);
  }
  _exit(98);
}
static int ignores(void) {
  struct sigaction now;
  sigaction(SIGTRAP, 0, &now);
  say("ignored", now.sa_handler == SIG_IGN);
  if (now.sa_handler == SIG_IGN) raise(SIGTRAP);
  execl("/nowhere", "nowhere", (char *)0);
  say("new", narrow(0) + narrow(3));
  for (int way = 0; way < 11; way++) say("found", finds(way));
  signal(SIGTRAP, SIG_IGN);
  for (int way = 0; way < 11; way++) say("asked for", finds(way));
  signal(SIGTRAP, SIG_DFL);
  for (int way = 0; way < 11; way++) say("not any more", finds(way));
  return 7;
}

/* Makes processes of which the C library tells nobody; each of them, and this one at the same time, enters one function often. */
enum { OFTEN = 1000000 };
__attribute__((noipa)) static unsigned counted(unsigned x) { return x % 3 ? x + 1 : x * 2; }
__attribute__((always_inline)) static inline void enter(void) { for (unsigned i = 0; i < OFTEN; i++) counted(i); }
static int cloned(void *code) { enter(); return (int)(long)code; }
static int forks(void) {
  static char stack[8192];
  struct clone_args arguments = {.exit_signal = SIGCHLD};
  for (int way = 0; way < 6; way++) {
    pid_t child = 0;
    switch (way) {
      case 0: child = _Fork(); break;
      case 1: child = clone(cloned, stack + sizeof stack - 24, SIGCHLD, (void *)7); break;
      case 2: child = syscall(SYS_fork); break;
      case 3: child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); break;
      case 4: child = syscall(SYS_clone3, &arguments, sizeof arguments); break;
      default: child = fork();
    }
    enter();
    if (!child) _exit(7);
    say("ended", end_of(child));
  }
  say("refused", syscall(SYS_clone3, 1, sizeof arguments) == -1 && errno == EFAULT);
  say("same", syscall(SYS_getpid) == getpid());
  return 8;
}

/* Processes that come and go, more than there are counters for at once, beside some that stay. */
enum { STAY = 80, COME = 4200 };
static int crowd(void) {
  pid_t staying[STAY], child;
  for (int i = 0; i < STAY; i++)
    if (!(staying[i] = fork())) for (;;) pause();
  unsigned sum = 0;
  for (unsigned i = 0; i < COME; i++) {
    if (!(child = fork())) _exit(counted(i) & 1);
    sum += end_of(child);
  }
  for (int i = 0; i < STAY; i++) { kill(staying[i], SIGKILL); end_of(staying[i]); }
  say("sum", sum);
  return 9;
}

static const struct { const char *name; int (*run)(void); } scenarios[] = {
  {"small_stack", small_stack}, {"shared_stack", shared_stack}, {"unmapped_stack", unmapped_stack},
  {"forked_unmapped_stack", forked_unmapped_stack},
  {"notified_in_threads", notified_in_threads}, {"masked_contexts", masked_contexts},
  {"cleared_handlers", cleared_handlers}, {"masked_pause", masked_pause},
  {"masked_by_number", masked_by_number}, {"left_stack", left_stack}, {"vforked", vforked},
  {"ignores", ignores}, {"forks", forks}, {"crowd", crowd},
};

int main(int count, char **arguments) {
  for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
    if (!strcmp(arguments[1], scenarios[i].name)) return scenarios[i].run();
  return 95;
}
