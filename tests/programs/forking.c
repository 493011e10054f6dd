/* Programs that fork, each by its name. Every process runs code that no other one runs, and code that its
   parent has run before it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#if __has_include(<linux/filter.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

#define WORK(name, number)                                                                   \
  __attribute__((noipa)) static unsigned name(unsigned x) {                                  \
    unsigned sum = 0;                                                                        \
    for (unsigned i = 0; i < 40; i++) {                                                      \
      switch ((x + i) % 5) {                                                                 \
        case 0: sum += number; break;                                                        \
        case 1: sum ^= i * 7; break;                                                         \
        case 2: sum = sum * 3 + 1; break;                                                    \
        case 3: sum -= x; break;                                                             \
        default: sum = sum << 3 | sum >> 29;                                                 \
      }                                                                                      \
    }                                                                                        \
    return sum;                                                                              \
  }
WORK(by_all, 11) WORK(by_parent, 13) WORK(by_child, 17)
WORK(by_second, 19) WORK(by_grandchild, 23) WORK(after_exec, 29)

static void say(const char *text, unsigned number) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %u\n", text, number);
  if (write(1, line, length) < 0) _exit(99);
}

static int end_of(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int family(void) {
  say("before", by_all(1));
  pid_t child = fork();
  if (child == 0) {
    say("child", by_all(1) + by_child(2));
    pid_t grandchild = fork();
    if (grandchild == 0) { say("grandchild", by_all(1) + by_grandchild(3)); _exit(4); }
    say("ended", end_of(grandchild));
    abort();
  }
  say("ended", end_of(child));
  child = fork();
  if (child == 0) { say("second", by_all(1) + by_second(5)); exit(6); }
  say("ended", end_of(child));
  say("parent", by_parent(7));
  return 0;
}

/* Reads a word at the second instruction of its first block, of which no instruction is longer than two bytes. */
extern int fetch(int *from);
__asm__(".text\n.globl fetch\n.type fetch, @function\n"
        "fetch: push %rbx\n mov (%rdi), %eax\n mov %eax, %ebx\n add %ebx, %eax\n pop %rbx\n ret\n"
        ".size fetch, . - fetch\n");

static int *page;
static pid_t forked;
static void in_handler(int signal) {
  (void)signal;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
  *page = 21;
  forked = fork();
}
static int fetched(int flags) {
  struct sigaction action = {0};
  action.sa_handler = in_handler;
  action.sa_flags = flags;
  sigaction(SIGSEGV, &action, 0);
  page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int got = fetch(page);
  if (forked == 0) { say("child", got + by_child(1)); _exit(3); }
  say("ended", end_of(forked));
  say("parent", got + by_parent(1) + fetch(page));
  return 0;
}
static int handler(void) { return fetched(0); }
static int alternate(void) {
  static char stack[65536];
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&other, 0);
  return fetched(SA_ONSTACK);
}

/* Signals come at any moment, and the handler forks: each child goes on where the parent was. */
enum { INTERRUPTIONS = 60 };
static volatile int children, is_child;
static sem_t begun, handled;
static void fork_here(int signal) {
  (void)signal;
  pid_t child = fork();
  if (child == 0) { is_child = 1; return; }
  children += end_of(child) == 17;
  sem_post(&handled);
}
static void *interrupts(void *thread) {
  while (sem_wait(&begun) < 0) {}
  for (int i = 0; i < INTERRUPTIONS; i++) {
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    while (sem_wait(&handled) < 0) {}
  }
  return 0;
}
static unsigned all_work(unsigned x) {
  return by_all(x) ^ by_parent(x) ^ by_child(x) ^ by_second(x) ^ by_grandchild(x);
}
static int interrupted(void) {
  pthread_t self = pthread_self(), other;
  unsigned expected = all_work(9), rounds = 0;
  signal(SIGUSR1, fork_here);
  sem_init(&begun, 0, 0);
  sem_init(&handled, 0, 0);
  pthread_create(&other, 0, interrupts, &self);
  sem_post(&begun);
  while (rounds < 1000 || children < INTERRUPTIONS) {
    unsigned got = all_work(9);
    if (is_child) _exit(got == expected ? 17 : 18);
    rounds++;
  }
  pthread_join(other, 0);
  say("children", children);
  return 0;
}

/* A trap after each instruction, those of probes included, and each handler forks. */
enum { STEPS = 4000, STEP = 0x100 };
static int ends[STEPS];
static volatile int steps, is_last;
static void on_step(int signal, siginfo_t *info, void *context) {
  greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
  (void)signal, (void)info;
  if (is_last || steps == STEPS) { *flags &= ~STEP; return; }
  pid_t child = fork();
  if (child == 0) { is_child = 1; *flags &= ~STEP; return; }
  ends[steps++] = end_of(child);
}
static int stepped(void) {
  struct sigaction action = {0};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, 0);
  __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
  unsigned got = by_child(2);
  is_last = 1;
  int wrong = 0;
  if (is_child) _exit(got % 64);
  for (int i = 0; i < steps; i++) wrong += ends[i] != (int)(got % 64);
  say("wrong", wrong);
  return steps < 200;
}

static void *works(void *unused) { say("thread", by_all(4)); return unused; }
static int threads(void) {
  pthread_t thread[4];
  for (int i = 0; i < 4; i++) pthread_create(&thread[i], 0, works, 0);
  pid_t child = fork();
  if (child == 0) { _exit(by_child(1) == by_child(1) ? 5 : 6); }
  for (int i = 0; i < 4; i++) pthread_join(thread[i], 0);
  say("ended", end_of(child));
  return 0;
}

static int executes(void) {
  pid_t child = fork();
  if (child == 0) {
    say("child", by_child(1));
    execl("/proc/self/exe", "forking", "last", (char *)0);
    _exit(97);
  }
  say("ended", end_of(child));
  return 0;
}
static int last(void) { say("last", after_exec(1)); return 8; }

static int to_background(void) {
  say("before", by_all(1));
  if (daemon(1, 1)) return 1;
  say("daemon", by_all(1) + by_child(2));
  return 0;
}

static int one_child(void) {
  say("before", by_all(1));
  pid_t child = fork();
  if (child == 0) { say("child", by_all(1) + by_child(1)); _exit(5); }
  say("ended", end_of(child));
  return 0;
}
/* From now on system calls that a program like this one never makes end it. */
static int locks_in(int by_number) {
#ifdef SECCOMP_MODE_FILTER
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
  if (by_number ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
#endif
  return one_child();
}
static int locked_in(void) { return locks_in(0); }
static int locked_in_by_number(void) { return locks_in(1); }
/* It may not make files any more. */
static int limited(void) {
  struct rlimit nothing = {0, 0};
  if (setrlimit(RLIMIT_FSIZE, &nothing)) return 1;
  return one_child();
}
static int out_of_files(void) {
  struct rlimit few = {3, 3};
  if (setrlimit(RLIMIT_NOFILE, &few)) return 1;
  return one_child();
}

/* Scopes that set a handler and keep the one before, as libraries do, each with memory of its own beside it. */
static void nothing(int signal) { (void)signal; }
static int scope(int depth) {
  volatile struct { struct sigaction before; unsigned long beside[40]; } kept;
  struct sigaction mine = {0};
  for (int i = 0; i < 40; i++) kept.beside[i] = 0x9e3779b97f4a7c15u * (i + 40 * depth + 1);
  mine.sa_handler = nothing;
  if (sigaction(SIGUSR1, &mine, (struct sigaction *)&kept.before)) return 1;
  int result = depth ? scope(depth - 1) : one_child();
  if (sigaction(SIGUSR1, (struct sigaction *)&kept.before, 0)) return 1;
  return result + (kept.beside[3] == 1);
}
static int scopes(void) { return scope(40); }

static const struct { const char *name; int (*run)(void); } scenarios[] = {
  {"family", family}, {"handler", handler}, {"alternate", alternate}, {"interrupted", interrupted},
  {"stepped", stepped},
  {"threads", threads}, {"executes", executes}, {"last", last}, {"to_background", to_background},
  {"one_child", one_child}, {"locked_in", locked_in}, {"locked_in_by_number", locked_in_by_number},
  {"limited", limited}, {"out_of_files", out_of_files}, {"scopes", scopes},
};

int main(int count, char **arguments) {
  for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
    if (!strcmp(arguments[1], scenarios[i].name)) return scenarios[i].run();
  return 96;
}
