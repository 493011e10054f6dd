// What a program finds when it begins, and what it does that an agent would attend to. Linked statically.
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int in_child(int n) { return n * 3; }
__attribute__((noinline)) int in_thread(int n) { return n * 5; }
__attribute__((noinline)) int in_handler(int n) { return n * 7; }
__attribute__((noinline)) int in_executed(int n) { return n * 11; }
__attribute__((noinline)) int never(int n) { return n * 13; }
static volatile int handled;

static void lines_of(const char *path, const char *const *names) {
  char line[256];
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    for (const char *const *name = names; *name; name++)
      if (!strncmp(line, *name, strlen(*name))) {
        // Not the two that C libraries keep for their threads: whoever has had one handles them.
        unsigned long set = strncmp(line, "Sig", 3) ? 0 : strtoul(strchr(line, ':') + 1, 0, 16) & ~(3ul << 31);
        if (set || !strncmp(line, "Sig", 3)) printf("%s %lx\n", *name, set);
        else fputs(line, stdout);
      }
  if (file) fclose(file);
}

// Open files, signals that are blocked, ignored, pending or handled, who attends to it, and whether it may get more rights.
__attribute__((noinline)) static int finds(void) {
  lines_of("/proc/self/status", (const char *const[]){"TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Seccomp:", "Threads", 0});
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) printf("open %s\n", entry->d_name);
  closedir(folder);
  printf("environment %s %s\n", getenv("LD_PRELOAD") ? "has" : "-", getenv("TOMO_ROSTER") ? "has" : "-");
  printf("parent's death %d dumpable %d\n", prctl(PR_GET_PDEATHSIG, &handled), prctl(PR_GET_DUMPABLE));
  return 3;
}

static void *thread(void *n) { return (void *)(long)in_thread((int)(long)n); }

static void on(int signal) { handled = in_handler(signal); }

__attribute__((noinline)) static int does(void) {
  pthread_t threads[4];
  signal(SIGUSR1, on);
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, thread, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  raise(SIGUSR1);
  int child = fork(), status;
  if (!child) _exit(in_child(2));
  waitpid(child, &status, 0);
  printf("handled %d child %d\n", handled, WEXITSTATUS(status));
  return 4;
}

__attribute__((noinline)) static int executes(char *own) {
  int child = fork(), status;
  if (!child) execl(own, own, "executed", (char *)0);
  waitpid(child, &status, 0);
  printf("executed %d\n", WEXITSTATUS(status));
  return 5;
}

// All signals are blocked for good, and traps are its own.
__attribute__((noinline)) static int blocks(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  signal(SIGTRAP, SIG_IGN);
  return in_handler(1) + in_thread(1);
}

// As much memory as there is for who is addressed at a fixed place.
__attribute__((noinline)) static int grows(void) {
  char *before = sbrk(0);
  for (long step = 1 << 26; step >= 1 << 20; step /= 2)
    while ((char *)sbrk(0) - before < 1L << 30 && sbrk(step) != (void *)-1) *((char *)sbrk(0) - 1) = 1;
  printf("%s\n", (char *)sbrk(0) - before >= 1L << 29 ? "much" : "little");
  return 6;
}

// It wants to end with its parent, and goes on for long enough to see who that is.
__attribute__((noinline)) static int follows(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < 100000; i++) sched_yield();
  return 7;
}

// It wants to change its own text.
__attribute__((noinline)) static int patches(void) {
  char *page = (char *)((unsigned long)never & -4096ul);
  int denied = mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
  printf("%s\n", denied ? "denied" : "allowed");
  return 8;
}

__attribute__((noinline)) static int serves(void) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  if (!strcmp(what, "finds")) return finds();
  if (!strcmp(what, "does")) return does();
  if (!strcmp(what, "executes")) return executes(arguments[0]);
  if (!strcmp(what, "executed")) return in_executed(1);
  if (!strcmp(what, "blocks")) return blocks();
  if (!strcmp(what, "grows")) return grows();
  if (!strcmp(what, "follows")) return follows();
  if (!strcmp(what, "patches")) return patches();
  if (!strcmp(what, "serves")) return serves();
  if (!strcmp(what, "aborts")) abort();
  return never(count);
}
