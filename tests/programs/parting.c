/* What programs do after which their text should be their own again, or their handlers may call nothing, each by its name.
   Every scenario runs code that has not run before behind it, and prints what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Short blocks, branches and a switch. */
#define WORK(n)                                                             \
  __attribute__((noinline)) static unsigned pick##n(unsigned x) {           \
    switch (x % 7) {                                                        \
      case 0: return x ^ n;                                                 \
      case 1: return x ? x - 1 : 0;                                         \
      case 2: return x * 3;                                                 \
      case 3: return ~x;                                                    \
      case 4: return x >> 1;                                                \
      default: return x + 2;                                                \
    }                                                                       \
  }                                                                         \
  __attribute__((noinline)) static unsigned work##n(unsigned seed) {        \
    unsigned sum = 0;                                                       \
    for (unsigned i = 0; i < 40; i++) {                                     \
      unsigned x = pick##n(seed + i);                                       \
      if (x & 1) sum += x; else if (x & 2) sum ^= x; else sum -= seed;      \
      if (sum > 1000000u) sum %= 977;                                       \
    }                                                                       \
    return sum;                                                             \
  }
WORK(1) WORK(2) WORK(3) WORK(4) WORK(5)

/* Two hundred blocks of two bytes, most of them out of reach of any filling: only a trap tells of them. */
__attribute__((noinline)) static unsigned dense(unsigned x) {
  __asm__ volatile("test %0, %0\n.rept 200\n1: jz 1f\n.endr\n1:" : "+r"(x));
  return x + 1;
}

static void say(const char *text, unsigned number) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %u\n", text, number);
  if (write(1, line, length) < 0) _exit(99);
}

/* A sandbox that ends who returns from a signal's handler, as that of OpenSSH's server does. */
static int close_sandbox(void) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
static int sandboxed(void) {
  say("closed", !close_sandbox());
  say("behind", work1(1) + work2(2) + dense(5));
  return 3;
}
/* A sandbox in which there is little more than writing; masks of signals may be set. */
static int close_narrow_sandbox(void) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
static unsigned compared;
__attribute__((noinline, noclone)) static int compare(const void *one, const void *other) {
  compared += 1 + work4(1) % 2;
  return *(const int *)one - *(const int *)other;
}
/* Has the C library call back, with more and more of the stack in between. */
__attribute__((noinline, noclone)) static unsigned sorts(unsigned depth) {
  volatile char room[600];
  int numbers[32];
  room[depth] = 1;
  for (int i = 0; i < 32; i++) numbers[i] = i * 37 % 64;
  qsort(numbers, 32, sizeof *numbers, compare);
  return depth ? sorts(depth - 1) + room[depth] + numbers[3] : (unsigned)numbers[4];
}
static int called_back(void) {
  say("closed", !close_narrow_sandbox());
  say("sorted", sorts(40));
  say("compared", compared);
  return 3;
}
static int end_of(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static int sandboxed_child(void) {
  pid_t child = fork();
  if (child == 0) {
    say("closed", !close_sandbox());
    pid_t grandchild = fork();
    if (grandchild == 0) { say("grandchild", work1(3) + dense(0)); _exit(4); }
    say("ended", end_of(grandchild));
    say("child", work2(3));
    _exit(5);
  }
  say("ended", end_of(child));
  say("parent", work3(3));
  return 0;
}

/* As a debugger starts its program: every stop is told, and gone on from without the signal. */
static void becomes_traced(const char *path) {
  ptrace(PTRACE_TRACEME, 0, 0, 0);
  if (path) say("another", work3(3)), execl(path, path, (char *)0);
  say("child", work1(dense(4)));
  execl("/bin/true", "true", (char *)0);
  _exit(97);
}
static int attends(pid_t child) {
  int status;
  for (unsigned stops = 0; waitpid(child, &status, 0) > 0;) {
    if (!WIFSTOPPED(status)) { say("stops", stops); break; }
    say("stopped by", WSTOPSIG(status));
    if (++stops > 20) { kill(child, 9); continue; }
    ptrace(PTRACE_CONT, child, 0, 0);
  }
  say("ended", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
  say("parent", work2(4));
  return 0;
}
static int traced(void) {
  pid_t child = fork();
  if (child == 0) becomes_traced(0);
  return attends(child);
}
/* The same of a child that borrows its parent's memory, of one that asks twice, and of one that finds nothing to become at first. */
static int traced_guest(void) {
  pid_t child = vfork();
  if (child == 0) becomes_traced(0);
  return attends(child);
}
static int traced_twice(void) {
  pid_t child = vfork();
  if (child == 0) {
    say("asked", !ptrace(PTRACE_TRACEME, 0, 0, 0));
    say("again", !ptrace(PTRACE_TRACEME, 0, 0, 0));
    becomes_traced(0);
  }
  return attends(child);
}
static int traced_in_vain(void) {
  pid_t child = vfork();
  if (child == 0) becomes_traced("/nowhere/at/all");
  return attends(child);
}

/* Changes a constant in its text, and then has a jump lead elsewhere. */
__attribute__((noinline, noclone)) static unsigned changed(unsigned x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 0x11223344;
}
__attribute__((noinline, noclone)) static unsigned other(unsigned x) { __asm__ volatile(""); return x * 3; }
static int patches(void) {
  unsigned (*volatile call)(unsigned) = changed;
  unsigned char *text = (unsigned char *)changed;
  uint32_t constant;
  int at = 0;
  do memcpy(&constant, text + ++at, 4); while (constant != 0x11223344 && at < 60);
  void *page = (void *)((uintptr_t)text & ~4095UL);
  pid_t child = fork();
  if (child == 0) {
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) _exit(98);
    constant = 5;
    memcpy(text + at, &constant, 4);
    say("child", call(1));
    _exit(6);
  }
  say("ended", end_of(child));
  say("before", call(1));
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return 98;
  constant = 1000;
  memcpy(text + at, &constant, 4);
  mprotect(page, 8192, PROT_READ | PROT_EXEC);
  say("changed", call(1));
  say("new", work1(5) + work2(5));
  mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
  int32_t distance = (char *)other - (char *)(text + 5);
  text[0] = 0xe9;
  memcpy(text + 1, &distance, 4);
  say("elsewhere", call(7));
  say("again", call(8) + work3(5));
  return 0;
}

/* Locks its memory, which is to stay small. */
static int locks(void) {
  mlockall(MCL_CURRENT | MCL_FUTURE);
  say("new", work1(6));
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  unsigned long resident = 0;
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %lu", &resident);
  say("less than a gigabyte", resident > 0 && resident < 1000000);
  return 0;
}

/* Adds up the memory that some walk through to test it when they crash (Redis does): what is no file's and no stack. */
static int walks(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long start, end, sum = 0;
  say("new", work1(9));
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "rw") && strstr(line, " 00:00 ") && !strstr(line, "stack") && sscanf(line, "%lx-%lx", &start, &end) == 2)
      sum += end - start;
  say("less than a gigabyte", sum < 1ul << 30);
  return 0;
}

/* Allows itself 400 MB of each kind of memory, less of it afterwards, and all that it may in the end. */
static int bounds(void) {
  static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
  for (int i = 0; i < 2; i++) {
    struct rlimit limit = {400 << 20, 500 << 20}, found = {0, 0};
    say("set", !setrlimit(kinds[i], &limit) && !getrlimit(kinds[i], &found));
    say("soft", found.rlim_cur >> 20), say("hard", found.rlim_max >> 20);
    char *memory = malloc(8 << 20);
    if (memory) memset(memory, work1(i), 8 << 20);
    say("there", memory != 0);
    say("more than that is not", malloc(500 << 20) == 0);
    limit.rlim_cur = 300 << 20;
    say("changed", !prlimit(getpid(), kinds[i], &limit, &found) && !prlimit(0, kinds[i], 0, &limit));
    say("before", found.rlim_cur >> 20), say("soft", limit.rlim_cur >> 20), say("hard", limit.rlim_max >> 20);
    limit.rlim_cur = limit.rlim_max;
    say("raised", !setrlimit(kinds[i], &limit));
  }
  return 3;
}

/* May write no file any more; then threads and their creator run the same code at once. */
__attribute__((noinline, noclone)) static unsigned counted(unsigned x) { __asm__ volatile(""); return x + 1; }
static void *counting(void *unused) {
  (void)unused;
  for (unsigned i = 0; i < 3000000; i++) counted(i);
  return 0;
}
static int limited(void) {
  pthread_t threads[3];
  struct rlimit none = {0, 0};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &none);
  for (int i = 0; i < 3; i++) if (pthread_create(threads + i, 0, counting, 0)) return 98;
  counting(0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  return 7;
}

/* Becomes another user, enters another root, or allows itself hardly anything; then there are threads, one after the other and at
   once, and processes with threads of their own, all of which do the same. */
static void *steps(void *unused) {
  (void)unused;
  for (unsigned i = 0; i < 1000; i++) counted(i);
  return 0;
}
static void three_threads(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) if (pthread_create(threads + i, 0, steps, 0)) exit(98);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
static int goes_on(void) {
  for (int i = 0; i < 4; i++) {
    int status = 0;
    three_threads();
    pid_t child = fork();
    if (!child) steps(0), three_threads(), _exit(5);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) return 97;
  }
  steps(0);
  return 7;
}
static int drops(void) { return setgroups(0, 0) || setgid(65534) || setuid(65534) ? 98 : goes_on(); }
static int returns(void) { return seteuid(65534) ? 98 : goes_on() != 7 || seteuid(0) ? 97 : goes_on(); }
static int moves_out(void) { return chroot(getenv("ROOT")) || chdir("/") || setresuid(1, 1, 1) ? 98 : goes_on(); }

/* Becomes nobody, and another program, which says something on both of its outputs. */
static int leaves(void) {
  if (setgroups(0, 0) || setgid(65534) || setuid(65534)) return 98;
  say("new", work1(7));
  fflush(stdout);
  execl("/bin/sh", "sh", "-c", "echo out; echo err >&2; exit 3", (char *)0);
  return 97;
}

/* Is another user than it acts as, and becomes another program: the loader takes that for raised rights. */
static int raises(void) {
  if (setresuid(65534, 0, 0)) return 98;
  say("new", work1(7));
  fflush(stdout);
  execl("/bin/sh", "sh", "-c", "echo out; echo err >&2; exit 3", (char *)0);
  return 97;
}

/* Has another root, and becomes a program there. */
static int shuts_in(void) {
  if (chroot(getenv("ROOT")) || chdir("/")) return 98;
  say("new", work1(8));
  fflush(stdout);
  execl("/program", "program", "bounds", (char *)0);
  return 97;
}

/* Forks on a stack on which large shared memory borders, and says how many pages of that there are. */
enum { REGION = 64 << 20, PAGE = 4096 };
static char *region;
static void *borders(void *unused) {
  (void)unused;
  static unsigned char resident[REGION / PAGE];
  int status = 0;
  pid_t child = fork();
  if (!child) _exit(work1(5) & 1);
  waitpid(child, &status, 0);
  if (mincore(region, REGION, resident)) return 0;
  unsigned pages = 0;
  for (unsigned page = 0; page < REGION / PAGE; page++) pages += resident[page] & 1;
  say("pages", pages);
  return 0;
}
static int bordering(void) {
  region = mmap(0, REGION, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_t thread;
  if (region == MAP_FAILED || pthread_create(&thread, 0, borders, 0)) return 98;
  pthread_join(thread, 0);
  return 0;
}

/* Forks into a process namespace of its own, where it may, in which nobody knows the parent. */
static int namespaced(void) {
  int status = 0;
  (void)unshare(CLONE_NEWPID);
  pid_t child = fork();
  if (!child) _exit(work1(6) & 1);
  waitpid(child, &status, 0);
  say("after", work2(6));
  return 0;
}

/* Starts four programs without its environment, and one that there is not; ends as the last one does. */
static int scrubs(void) {
  char *words[] = {"sh", "-c", "exit 4", 0}, *none[] = {0}, *others[] = {"LD_PRELOAD=", "PATH=/bin:/usr/bin", 0};
  pid_t child;
  if (execve("/there/is/none", words, none) != -1) return 1;
  if (posix_spawn(&child, "/there/is/none", 0, 0, words, none) == 0) return 2;
  if (posix_spawn(&child, "/bin/sh", 0, 0, words, others) || end_of(child) != 4) return 3;
  if (!(child = vfork())) {
    execve("/bin/sh", words, none);
    _exit(9);
  }
  if (end_of(child) != 4) return 5;
  if (!(child = vfork())) {
    execle("/bin/sh", "sh", "-c", "exit 4", (char *)0, none);
    _exit(9);
  }
  if (end_of(child) != 4) return 6;
  clearenv();
  return execv("/bin/sh", words);
}

/* Starts three programs with as long arguments as there is room for beside its environment, but for what tomo puts into that, and one with
   longer ones. */
static int fills(void) {
  const struct rlimit small = {1 << 19, 1 << 23};
  const size_t room = 32 * 4096, to_spare = 64;
  size_t taken = sizeof "/bin/sh" + sizeof "sh" + sizeof "-c" + sizeof "exit 4" + 4 * sizeof(char *);
  for (char **entry = environ; *entry; entry++)
    if (strncmp(*entry, "LD_PRELOAD=", 11) && strncmp(*entry, "TOMO_ROSTER=", 12)) taken += strlen(*entry) + 1 + sizeof(char *);
  char *filling = memset(calloc(room, 1), 'x', room - taken - to_spare - 1), *words[] = {"sh", "-c", "exit 4", filling, 0};
  pid_t child;
  if (setrlimit(RLIMIT_STACK, &small)) return 1;
  if (posix_spawn(&child, "/bin/sh", 0, 0, words, environ) || end_of(child) != 4) return 2;
  if (!(child = vfork())) {
    execvp("sh", words);
    _exit(9);
  }
  if (end_of(child) != 4) return 3;
  if (!(child = fork())) _exit((int)syscall(SYS_execve, "/bin/sh", words, environ));
  if (end_of(child) != 4) return 5;
  memset(filling, 'x', room - taken + 2 * to_spare);
  say("too long", execv("/bin/sh", words) == -1 && errno == E2BIG);
  return work3(3) == 0;
}

/* Has a program asked what it would load, in an environment for that and in its own; says how much that told. */
static unsigned lines(int ends[2]) {
  char text[512];
  unsigned lines = 0;
  close(ends[1]);
  for (ssize_t length; (length = read(ends[0], text, sizeof text)) > 0;)
    for (ssize_t at = 0; at < length; at++) lines += text[at] == '\n';
  close(ends[0]);
  return lines;
}
static int lists(void) {
  char *words[] = {"sh", 0}, *entries[512], **to = entries, *list = getenv("LD_PRELOAD"), *before = strdup(list ? list : "");
  posix_spawn_file_actions_t actions;
  pid_t child;
  int ends[2];
  for (char **entry = environ; *entry && to < entries + 510; entry++) *to++ = *entry;
  *to++ = "LD_TRACE_LOADED_OBJECTS=1", *to = 0;
  if (pipe(ends) || posix_spawn_file_actions_init(&actions) || posix_spawn_file_actions_adddup2(&actions, ends[1], 1)) return 98;
  if (posix_spawn(&child, "/bin/sh", &actions, 0, words, entries)) return 97;
  say("lines", lines(ends)), say("ended", end_of(child));
  say("as before", !strcmp(before, list ? list : ""));
  if (pipe(ends) || putenv("LD_TRACE_LOADED_OBJECTS=1")) return 98;
  if (!(child = vfork())) {
    dup2(ends[1], 1);
    execvp("sh", words);
    _exit(9);
  }
  say("lines", lines(ends)), say("ended", end_of(child));
  say("as before", !strcmp(before, list ? list : ""));
  return 3;
}

/* Asks whether there are sandboxes, and is in none. */
static volatile sig_atomic_t trapped;
static void trap(int number) { trapped += number == SIGTRAP; }
static int asks(void) {
  sigset_t old;
  signal(SIGTRAP, trap);
  say("refused", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) && errno == EFAULT);
  say("known", !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){SECCOMP_RET_KILL_THREAD}));
  pid_t child = vfork();
  if (!child) {
    signal(SIGTRAP, SIG_DFL);
    _exit(3);
  }
  say("child", end_of(child));
  say("fault", syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, &old, 8) && errno == EFAULT);
  raise(SIGTRAP);
  say("trapped", trapped), say("work", work1(7));
  return 3;
}

/* One limit is where the new one is, and where the old one is to be. */
static int swaps_limits(void) {
  struct rlimit limit = {1ull << 40, 1ull << 41};
  say("changed", !prlimit(0, RLIMIT_AS, &limit, &limit));
  say("now", !getrlimit(RLIMIT_AS, &limit)), say("soft", limit.rlim_cur >> 20), say("hard", limit.rlim_max >> 20);
  return 3;
}

/* Its children are both the first processes of their namespaces, one at a time. */
static int does(void *which) { return which ? work1(8) & 1 : work2(8) & 1; }
static int first_ones(void) {
  static char stack[2][65536] __attribute__((aligned(16)));
  for (long i = 0; i < 2; i++) {
    pid_t child = clone(does, stack[i] + sizeof stack[i], CLONE_NEWPID | SIGCHLD, (void *)i);
    if (child < 0) return 98;
    say("ended", end_of(child));
  }
  return 3;
}

/* Forks in a handler, on a stack that has little room. */
static void forks(int number) {
  pid_t child = fork();
  if (!child) _exit(42);
  trapped = end_of(child) + number;
}
static int forks_on_a_small_stack(void) {
  stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
  struct sigaction action = {.sa_handler = forks, .sa_flags = SA_ONSTACK};
  say("named", !sigaltstack(&stack, 0) && !sigaction(SIGUSR1, &action, 0));
  raise(SIGUSR1);
  say("ended", trapped - SIGUSR1);
  return 3;
}

static const struct { const char *name; int (*run)(void); } scenarios[] = {
  {"sandboxed", sandboxed}, {"sandboxed_child", sandboxed_child},
  {"called_back", called_back}, {"traced", traced},
  {"traced_guest", traced_guest}, {"traced_twice", traced_twice}, {"traced_in_vain", traced_in_vain}, {"patches", patches},
  {"locks", locks}, {"limited", limited},
  {"walks", walks}, {"bounds", bounds}, {"shuts_in", shuts_in},
  {"drops", drops}, {"returns", returns}, {"moves_out", moves_out}, {"leaves", leaves}, {"raises", raises}, {"bordering", bordering}, {"namespaced", namespaced},
  {"scrubs", scrubs}, {"lists", lists}, {"fills", fills}, {"asks", asks}, {"swaps_limits", swaps_limits}, {"first_ones", first_ones},
  {"forks_on_a_small_stack", forks_on_a_small_stack},
};

int main(int count, char **arguments) {
  for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
    if (!strcmp(arguments[1], scenarios[i].name)) return scenarios[i].run();
  return work4(count) + work5(count) == 0;
}
