/* What programs do with signals, threads, processes and stacks, each by its name. Every scenario runs
   code that has not run before in the midst of it, and prints what came of it. */
#define _GNU_SOURCE
#ifndef EXITS
#define EXITS 6
#endif
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;
static const char *self;

/* Functions with short and long blocks, branches, a switch and loops; a set of them for each place at
   which new code is to run. */
#define WORK(n)                                                                              \
  __attribute__((noinline)) static unsigned leaf##n(unsigned x) { return x ? x - 1 : 0; }     \
  __attribute__((noinline)) static unsigned pick##n(unsigned x) {                             \
    switch (x % 7) {                                                                         \
      case 0: return x ^ n;                                                                  \
      case 1: return leaf##n(x);                                                             \
      case 2: return x * 3;                                                                  \
      case 3: return ~x;                                                                     \
      case 4: return x >> 1;                                                                 \
      default: return leaf##n(x) + 2;                                                        \
    }                                                                                        \
  }                                                                                          \
  __attribute__((noinline)) static unsigned work##n(unsigned seed) {                          \
    unsigned sum = 0;                                                                        \
    for (unsigned i = 0; i < 40; i++) {                                                      \
      unsigned x = pick##n(seed + i);                                                        \
      if (x & 1) sum += x; else if (x & 2) sum ^= x; else sum -= leaf##n(x);                  \
      if (sum > 1000000u) sum %= 977;                                                        \
    }                                                                                        \
    return sum;                                                                              \
  }
WORK(1) WORK(2) WORK(3) WORK(4) WORK(5) WORK(6) WORK(7) WORK(8) WORK(9)

static volatile int *volatile nowhere = (volatile int *)8;

static void say(const char *text, unsigned number) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %u\n", text, number);
  if (write(1, line, length) < 0) _exit(99);
}

static void in_handler(int signal) { say("handler", work1(signal)); }
static void in_handler_info(int signal, siginfo_t *info, void *context) {
  (void)context;
  say("handler with info", work2(signal) + (info->si_signo == signal));
}

static void handle(int signal, void (*handler)(int), int flags, int full) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (full) sigfillset(&action.sa_mask);
  sigaction(signal, &action, 0);
}

static int trap_handled(void) {
  struct sigaction action = {0}, old;
  action.sa_sigaction = in_handler_info;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, 0);
  raise(SIGTRAP);
  __asm__ volatile("int3");
  sigaction(SIGTRAP, 0, &old);
  say("asked", old.sa_sigaction == in_handler_info);
  signal(SIGTRAP, in_handler);
  raise(SIGTRAP);
  say("after", work3(1));
  return 0;
}
static int trap_ignored(void) {
  signal(SIGTRAP, SIG_IGN);
  raise(SIGTRAP);
  say("survived", work1(2));
  return 0;
}
static int trap_raised(void) { say("before", work1(3)); raise(SIGTRAP); return 0; }
static int trap_own(void) { say("before", work1(4)); __asm__ volatile("int3"); return 0; }

static int blocked(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  say("blocked", work1(5));
  pthread_sigmask(SIG_BLOCK, &all, 0);
  say("still", work2(5));
  return 0;
}
static int full_mask(void) {
  handle(SIGUSR1, in_handler, 0, 1);
  raise(SIGUSR1);
  say("after", work3(6));
  return 0;
}
/* A handler makes way for a while, and comes back as it was told. */
static int for_a_while(void) {
  struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
  int signals[] = {SIGUSR1, SIGSEGV};
  for (int i = 0; i < 2; i++) {
    handle(signals[i], in_handler, 0, 0);
    sigaction(signals[i], &ignored, &before);
    sigaction(signals[i], &before, 0);
    say("the same", before.sa_handler == in_handler);
    raise(signals[i]);
    void (*handler)(int) = signal(signals[i], SIG_IGN);
    signal(signals[i], handler);
    sigaction(signals[i], 0, &before);
    say("the same", handler == in_handler && before.sa_handler == in_handler);
    raise(signals[i]);
  }
  return 0;
}
/* What the C library's headers make of calls in hardened programs, and another name of sigaction. */
#ifdef __GLIBC__
extern int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
extern int __sigaction(int, const struct sigaction *, struct sigaction *);
#else
#define __ppoll_chk(files, count, time, set, size) ppoll(files, count, time, set)
#define __sigaction sigaction
#define ssignal signal
#define sysv_signal __sysv_signal
extern void (*__sysv_signal(int, void (*)(int)))(int);
#endif

static volatile unsigned turn;
static void in_turn(int signal) {
  switch (turn++) {
    case 0: say("first", work1(signal)); break;
    case 1: say("second", work2(signal)); break;
    default: say("third", work3(signal));
  }
}
static int suspended(void) {
  sigset_t all;
  handle(SIGUSR1, in_turn, 0, 1);
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  raise(SIGUSR1);
  sigdelset(&all, SIGUSR1);
  sigsuspend(&all);
  raise(SIGUSR1);
  struct pollfd none = {-1, 0, 0};
  ppoll(&none, 1, 0, &all);
  raise(SIGUSR1);
  __ppoll_chk(&none, 1, 0, &all, sizeof none);
  say("after", work4(7));
  return 0;
}
static int trap_by_other_names(void) {
  ssignal(SIGTRAP, in_handler);
  say("set", work2(4));
  raise(SIGTRAP);
  struct sigaction action = {0}, old;
  action.sa_sigaction = in_handler_info;
  action.sa_flags = SA_SIGINFO;
  __sigaction(SIGTRAP, &action, &old);
  say("was", old.sa_handler == in_handler);
  raise(SIGTRAP);
  say("held", sigset(SIGTRAP, SIG_HOLD) == SIG_ERR);
  say("while", work3(4));
  sigrelse(SIGTRAP);
  say("ignored", sigignore(SIGTRAP));
  raise(SIGTRAP);
  say("survived", work4(4));
  return 0;
}
/* Where there is no memory the system says so, whatever is to be there. */
static int nowhere_at_all(void) {
#ifdef __GLIBC__
  char *words[] = {"sh", 0}, *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pid_t child;
  mprotect(page + 4096, 4096, PROT_NONE);
  void *wrong[] = {(void *)8, (void *)-8, page + 4096, (void *)(1ul << 62)};
  for (unsigned i = 0; i < 4; i++) {
    char **list = wrong[i], *entries[] = {"A=b", wrong[i], 0};
    struct pollfd none = {-1, 0, 0};
    struct timespec now = {0, 0};
    struct epoll_event event;
    say("wrong", i + work1(24 + i));
    say("execve", execve("/bin/sh", words, list) == -1 && errno == EFAULT);
    say("execvpe", execvpe("/bin/sh", words, entries) == -1 && errno == EFAULT);
    say("posix_spawn", posix_spawn(&child, "/bin/sh", 0, 0, words, entries) == EFAULT);
    say("ppoll", ppoll(&none, 1, &now, wrong[i]) == -1 && errno == EFAULT);
    say("pselect", pselect(0, 0, 0, 0, &now, wrong[i]) == -1 && errno == EFAULT);
    say("epoll_pwait", epoll_pwait(epoll_create1(EPOLL_CLOEXEC), &event, 1, 0, wrong[i]) == -1 && errno == EFAULT);
    say("sigsuspend", sigsuspend(wrong[i]) == -1 && errno == EFAULT);
    say("sigaltstack", sigaltstack(wrong[i], 0) == -1 && errno == EFAULT);
    say("setrlimit", setrlimit(RLIMIT_DATA, wrong[i]) == -1 && errno == EFAULT);
  }
  /* What ends where memory does is there. */
  char **entries = (char **)(page + 4096) - 1;
  memcpy(page + 4000, "A=b", 4);
  *entries = 0;
  say("execve", execve("/there/is/none", words, entries) == -1 && errno == ENOENT);
  sigset_t *set = (sigset_t *)(page + 4088);
  say("ppoll", ppoll(0, 0, &(struct timespec){0, 0}, set) == 0);
#endif
  return 3;
}
/* Calls what other C libraries have, where somebody has it. */
#ifndef __GLIBC__
extern __attribute__((weak)) int pkey_mprotect(void *, size_t, int, int);
extern __attribute__((weak)) int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
#endif
static int lacking(void) {
#ifndef __GLIBC__
  errno = 0;
  say("pkey_mprotect", pkey_mprotect && pkey_mprotect(0, 0, 0, 0) == -1 && errno == ENOSYS);
  errno = 0;
  say("epoll_pwait2", epoll_pwait2 && epoll_pwait2(-1, 0, 0, 0, 0) == -1 && errno == ENOSYS);
#endif
  return 3;
}
/* Handlers of System V are called once. */
static int trap_once(void) {
  struct sigaction old;
  sysv_signal(SIGTRAP, in_handler);
  raise(SIGTRAP);
  sigaction(SIGTRAP, 0, &old);
  say("there", old.sa_handler == in_handler);
  __sysv_signal(SIGTRAP, in_handler);
  sigaction(SIGTRAP, 0, &old);
  say("resets", (old.sa_flags & (SA_RESETHAND | SA_NODEFER)) != 0);
  raise(SIGTRAP);
  say("again", work2(23));
  raise(SIGTRAP);
  say("survived", work3(23));
  return 0;
}
static int waited(void) {
  sigset_t set;
  int got = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, 0);
  raise(SIGUSR2);
  sigwait(&set, &got);
  say("waited", got + work1(8));
  int file = signalfd(-1, &set, 0);
  raise(SIGUSR2);
  struct signalfd_siginfo info;
  if (read(file, &info, sizeof info) != sizeof info) return 1;
  say("read", info.ssi_signo + work2(8));
  return 0;
}
static int alternate_stack(void) {
  static char stack[16384];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, 0);
  handle(SIGUSR1, in_handler, SA_ONSTACK, 0);
  raise(SIGUSR1);
  say("after", work3(9));
  return 0;
}

/* All registers that a program has, as it fills them and finds them behind new code. */
struct registers { uint64_t general[15], flags; uint8_t vectors[16][32]; uint32_t control[2]; };
#define EACH(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)
/* The code: jumps from one to the next, none with room for more than a trap. */
#define CHAIN "jmp 1f\n1: jmp 2f\n2: jmp 3f\n3: jmp 4f\n4: jmp 5f\n5: jmp 6f\n6: jmp 7f\n7: jmp 8f\n8:\n"
#define FILL(n) MOVE " 128+32*" #n "(%rdi), %" VECTOR #n "\n"
#define KEEP(n) MOVE " %" VECTOR #n ", 128+32*" #n "(%rax)\n"
#define PASS(name)                                                                            \
  __asm__(".text\n.type " name ", @function\n" name ":\n"                                      \
          "pushq %rbx\npushq %rbp\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"           \
          "pushq %rsi\nsubq $16, %rsp\nstmxcsr (%rsp)\nfnstcw 4(%rsp)\n"                       \
          EACH(FILL) "ldmxcsr 640(%rdi)\nfldcw 644(%rdi)\npushq 120(%rdi)\npopfq\n"            \
          "movq (%rdi), %rax\nmovq 8(%rdi), %rbx\nmovq 16(%rdi), %rcx\nmovq 24(%rdi), %rdx\n"  \
          "movq 32(%rdi), %rsi\nmovq 48(%rdi), %rbp\nmovq 56(%rdi), %r8\nmovq 64(%rdi), %r9\n" \
          "movq 72(%rdi), %r10\nmovq 80(%rdi), %r11\nmovq 88(%rdi), %r12\nmovq 96(%rdi), %r13\n" \
          "movq 104(%rdi), %r14\nmovq 112(%rdi), %r15\nmovq 40(%rdi), %rdi\n"                  \
          CHAIN "pushq %rax\nmovq 24(%rsp), %rax\npopq (%rax)\npushfq\npopq 120(%rax)\n"       \
          "movq %rbx, 8(%rax)\nmovq %rcx, 16(%rax)\nmovq %rdx, 24(%rax)\nmovq %rsi, 32(%rax)\n" \
          "movq %rdi, 40(%rax)\nmovq %rbp, 48(%rax)\nmovq %r8, 56(%rax)\nmovq %r9, 64(%rax)\n" \
          "movq %r10, 72(%rax)\nmovq %r11, 80(%rax)\nmovq %r12, 88(%rax)\nmovq %r13, 96(%rax)\n" \
          "movq %r14, 104(%rax)\nmovq %r15, 112(%rax)\n"                                       \
          EACH(KEEP) "stmxcsr 640(%rax)\nfnstcw 644(%rax)\n"                                   \
          "ldmxcsr (%rsp)\nfldcw 4(%rsp)\naddq $16, %rsp\npopq %rsi\n"                         \
          "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\nret\n"           \
          ".size " name ", .-" name "\n")
#define MOVE "movups"
#define VECTOR "xmm"
PASS("pass_narrow");
#undef MOVE
#undef VECTOR
#define MOVE "vmovups"
#define VECTOR "ymm"
PASS("pass_wide");
void pass_narrow(const struct registers *in, struct registers *out);
void pass_wide(const struct registers *in, struct registers *out);

static unsigned are_kept(void (*pass)(const struct registers *, struct registers *), size_t width) {
  const uint64_t arithmetic = 0x8d5;
  static struct registers in, out;
  unsigned kept = 1;
  for (int i = 0; i < 15; i++) in.general[i] = 0x0101010101010101u * (i + 1);
  for (int i = 0; i < 16; i++) memset(in.vectors[i], 0x80 + i, width);
  in.flags = arithmetic | 2;
  in.control[0] = 0x7f80;
  in.control[1] = 0x0f7f;
  memset(&out, 0, sizeof out);
  pass(&in, &out);
  for (int i = 0; i < 15; i++) kept &= in.general[i] == out.general[i];
  for (int i = 0; i < 16; i++) kept &= !memcmp(in.vectors[i], out.vectors[i], width);
  kept &= (out.flags & arithmetic) == arithmetic && !memcmp(in.control, out.control, sizeof in.control);
  return kept;
}
static int registers(void) {
  say("kept", are_kept(pass_narrow, 16));
  say("wide ones too", !__builtin_cpu_supports("avx") || are_kept(pass_wide, 32));
  return 0;
}

static char spare[65536];
static void on_spare(int signal) {
  char here;
  say("on the spare stack", &here >= spare && &here < spare + sizeof spare);
  say("new there", work4(signal));
}
/* The stack for handlers is not set while a handler runs on it. */
static int disarmed_stack(void) {
  stack_t once = {.ss_sp = spare, .ss_size = sizeof spare, .ss_flags = (int)(1u << 31)}, now;
  if (sigaltstack(&once, 0)) return 1;
  handle(SIGUSR1, on_spare, SA_ONSTACK, 0);
  for (unsigned i = 0; i < 3; i++) {
    say("new", i == 0 ? work1(21) : i == 1 ? work2(21) : work3(21));
    sigaltstack(0, &now);
    say("set", now.ss_sp == spare && now.ss_size == sizeof spare);
    raise(SIGUSR1);
  }
  return 0;
}

static pthread_barrier_t barrier;
static void *all_at_once(void *seed) {
  unsigned sum = 0;
  pthread_barrier_wait(&barrier);
  sum += work1(0);
  pthread_barrier_wait(&barrier);
  sum += work2(0) + work3(0) + work4(0);
  pthread_barrier_wait(&barrier);
  sum += work5(0) + work6(0) + work7(0) + work8(0) + work9(0);
  return (void *)(uintptr_t)(sum + 0 * (uintptr_t)seed);
}
static int threads(void) {
  pthread_t thread[8];
  pthread_barrier_init(&barrier, 0, 8);
  for (int i = 0; i < 8; i++) pthread_create(&thread[i], 0, all_at_once, 0);
  for (int i = 0; i < 8; i++) {
    void *sum;
    pthread_join(thread[i], &sum);
    say("thread", (unsigned)(uintptr_t)sum);
  }
  return 0;
}
static int one_thread(void) {
  pthread_barrier_init(&barrier, 0, 1);
  say("thread", (unsigned)(uintptr_t)all_at_once(0));
  return 0;
}
static void *on_tiny_stack(void *unused) { (void)unused; say("tiny", work1(10)); return 0; }
static int tiny_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  pthread_create(&thread, &attributes, on_tiny_stack, 0);
  pthread_join(thread, 0);
  return 0;
}

#ifdef __GLIBC__
static ucontext_t back, there;
static void coroutine(void) { say("coroutine", work1(11)); swapcontext(&there, &back); say("again", work2(11)); }
static int contexts(void) {
  static char stack[32768];
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof stack;
  there.uc_link = &back;
  makecontext(&there, coroutine, 0);
  swapcontext(&back, &there);
  say("between", work3(11));
  swapcontext(&back, &there);
  return 0;
}
#else
static int contexts(void) { return 1; }
#endif

static int end_of(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static int forked(void) {
  pid_t child = fork();
  if (child == 0) { say("child", work1(12)); _exit(7); }
  say("ended", end_of(child));
  say("parent", work1(12) + work2(12));
  child = fork();
  if (child == 0) { say("child", work3(12)); abort(); }
  say("ended", end_of(child));
  return 0;
}
static int vforked(void) {
  pid_t child = vfork();
  if (child == 0) { execl(self, self, "exit", (char *)0); _exit(98); }
  say("ended", end_of(child));
  return 0;
}
static int spawned(void) {
  pid_t child;
  char *arguments[] = {(char *)self, "exit", 0};
  if (posix_spawn(&child, self, 0, 0, arguments, environ)) return 1;
  say("ended", end_of(child));
  char *other[] = {"sh", "-c", "exit 4", 0};
  if (posix_spawnp(&child, "sh", 0, 0, other, environ)) return 1;
  say("ended", end_of(child));
  return system("exit 3") >> 8;
}
static int executed(void) { say("before", work1(13)); execl(self, self, "exit", (char *)0); return 97; }
static int executed_bare(void) {
  char *arguments[] = {(char *)self, "exit", 0}, *nothing[] = {0};
  execve(self, arguments, nothing);
  return 97;
}
static int exits(void) { say("exit", work1(14)); exit(EXITS); }
static int exits_at_once(void) { say("_exit", work1(15)); _exit(9); }
static int aborts(void) { say("abort", work1(16)); abort(); }
static int crashes(void) { say("crash", work1(17)); *nowhere = 1; return 0; }
static int killed(void) { say("kill", work1(18)); raise(SIGKILL); return 0; }

static sigjmp_buf place;
static void jump(int signal) { say("jump", work2(signal)); siglongjmp(place, 1); }
static int jumps(void) {
  static jmp_buf plain;
  if (setjmp(plain) == 0) { say("long", work1(19)); longjmp(plain, 1); }
  handle(SIGSEGV, jump, 0, 1);
  for (int i = 0; i < 3; i++)
    if (sigsetjmp(place, 1) == 0) *nowhere = i;
    else say("landed", work3(19));
  return 0;
}
static int loads(void) {
  void *library = dlopen("libm.so.6", RTLD_NOW);
  double (*root)(double) = library ? (double (*)(double))dlsym(library, "cbrt") : 0;
  say("root", root ? (unsigned)root(27.0) : 0);
  return 0;
}
/* Never ends by itself. */
static int serves(void) {
  say("serving", work1(20));
  for (;;) pause();
  return 0;
}
/* The same in a group of its own, which a terminal knows nothing of. */
static int serves_apart(void) { return setpgid(0, 0) ? 98 : serves(); }

/* Says which signals it gets, all that a program may wait for, until it gets the last one. */
static sigset_t all;
static void block_all(void) {
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, 0);
}
static int told_until(int last, const char *first) {
  puts(first);
  fflush(stdout);
  for (int signal = 0; signal != last;) {
    if (sigwait(&all, &signal)) return 98;
    printf("%d\n", signal);
    fflush(stdout);
  }
  return 0;
}
static int told(void) {
  block_all();
  return told_until(SIGTERM, "waiting");
}
/* Sends to its group, to its parent, and by a child to its group, by signals of which each one counts. */
static int sends(void) {
  block_all();
  kill(0, SIGRTMIN);
  kill(getppid(), SIGRTMIN + 1);
  pid_t child = fork();
  if (child == 0) { kill(0, SIGRTMIN + 2); _exit(0); }
  siginfo_t info;
  waitid(P_PID, child, &info, WEXITED | WNOWAIT);
  sigdelset(&all, SIGCHLD);
  return told_until(SIGRTMAX, "sent");
}
/* Sends to its parent from a group of its own. */
static int sends_apart(void) {
  union sigval seven = {7};
  say("sent", !setpgid(0, 0) && !sigqueue(getppid(), SIGRTMIN + 1, seven));
  return 3;
}
/* Starts a command, and says what that has sent to it. */
static int hears(char **command) {
  block_all();
  pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_UNBLOCK, &all, 0);
    execvp(command[0], command);
    _exit(97);
  }
  say("ended", end_of(child));
  siginfo_t info;
  struct timespec none = {0, 0};
  sigdelset(&all, SIGCHLD);
  while (sigtimedwait(&all, &info, &none) > 0) say(info.si_signo == SIGRTMIN + 1 ? "heard" : "?", info.si_value.sival_int);
  return 0;
}

static const struct { const char *name; int (*run)(void); } scenarios[] = {
  {"trap_handled", trap_handled}, {"trap_ignored", trap_ignored}, {"trap_raised", trap_raised},
  {"trap_own", trap_own}, {"trap_once", trap_once}, {"lacking", lacking}, {"nowhere_at_all", nowhere_at_all}, {"blocked", blocked}, {"full_mask", full_mask}, {"for_a_while", for_a_while}, {"suspended", suspended},
  {"waited", waited}, {"alternate_stack", alternate_stack}, {"threads", threads},
  {"one_thread", one_thread}, {"tiny_stack", tiny_stack}, {"contexts", contexts}, {"forked", forked},
  {"vforked", vforked}, {"spawned", spawned}, {"executed", executed}, {"executed_bare", executed_bare},
  {"exit", exits}, {"exits_at_once", exits_at_once}, {"aborts", aborts}, {"crashes", crashes},
  {"killed", killed}, {"jumps", jumps}, {"loads", loads}, {"serves", serves}, {"told", told},
  {"registers", registers}, {"disarmed_stack", disarmed_stack},
  {"trap_by_other_names", trap_by_other_names}, {"serves_apart", serves_apart},
  {"sends", sends}, {"sends_apart", sends_apart},
};

int main(int count, char **arguments) {
  self = "/proc/self/exe";
  /* An alarm is kept when another program is executed. */
  if (count > 2 && !strcmp(arguments[1], "alarm")) {
    alarm(1);
    execvp(arguments[2], arguments + 2);
  }
  if (count > 2 && !strcmp(arguments[1], "hears")) return hears(arguments + 2);
  for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
    if (!strcmp(arguments[1], scenarios[i].name)) return scenarios[i].run();
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) puts(scenarios[i].name);
  return 0;
}
