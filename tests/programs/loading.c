/* Loads a library after its start, in the manner that the first argument names; the others are paths of
   libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int function(int);

static void *open_it(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library) printf("does not load\n");
  return library;
}
static int use(void *library) {
  function *steps = library ? (function *)dlsym(library, "steps") : 0;
  int sum = 0;
  for (int i = 0; steps && i < 60; i++) sum += steps(i);
  return sum;
}
static void quiet(int signal) { (void)signal; }
static void *user(void *path) {
  void *library = open_it(path);
  return (void *)(long)use(library);
}

static volatile int stop;
static void *at_work(void *library) {
  while (!stop) use(library);
  return 0;
}
static int mappings(void) {
  char line[4096];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) count++;
  if (maps) fclose(maps);
  return count;
}

/* Maps all memory that code of a library that is loaded next can reach, but for a hole far below it, or for the five pages
   of the library itself. */
#define MB (1L << 20)
static void crowd(long hole) {
  long libraries = (long)dlsym(RTLD_DEFAULT, "printf") & -4096, top = 0, start, end;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  /* The lowest mapping of those that follow each other closely up to the C library. */
  for (long last = 0; maps && fgets(line, sizeof line, maps);) {
    sscanf(line, "%lx-%lx", &start, &end);
    if (start > libraries) break;
    if (start - last > 64 * MB) top = start;
    last = end;
  }
  if (maps) fclose(maps);
  for (long below = MB; below < 3000 * MB; below += 4 * MB) {
    if (below > 1000 * MB && below < 1000 * MB + hole) continue;
    mmap((void *)(top - below - 4 * MB), 4 * MB, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (hole) return;
  void *library = mmap(0, 5 * 4096, PROT_NONE, flags, -1, 0);
  while ((long)mmap(0, 4096, PROT_NONE, flags, -1, 0) > top - 3000 * MB);
  munmap(library, 5 * 4096);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const char *how = arguments[1], *path = arguments[2];
  if (!strncmp(how, "crowded:", 8)) crowd(64 * MB), how += 8;
  if (!strncmp(how, "full:", 5)) crowd(0), how += 5;
  if (!strcmp(how, "once")) {
    printf("%d\n", use(open_it(path)));
  } else if (!strcmp(how, "handled")) {
    /* Between two uses the program asks for a handler on a stack of its own. */
    void *library = open_it(path);
    int before = use(library);
    struct sigaction action = {.sa_handler = quiet, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, 0);
    printf("%d %d\n", before, use(library));
  } else if (!strcmp(how, "few")) {
    open_it(path);
    printf("few\n");
  } else if (!strcmp(how, "again")) {
    for (int i = 0; i < 5; i++) {
      void *library = open_it(path);
      printf("%d\n", use(library));
      printf("closed %d\n", dlclose(library));
    }
  } else if (!strcmp(how, "beside")) {
    void *library = open_it(path);
    for (int i = 0; i < 1200; i++) {
      dlclose(open_it(arguments[3]));
      if (i % 100 == 0) printf("%d\n", use(library));
    }
  } else if (!strcmp(how, "mappings")) {
    /* Others come and go. */
    void *library = open_it(path);
    dlclose(open_it(arguments[3]));
    int before = mappings();
    for (int i = 0; i < 100; i++) dlclose(open_it(arguments[3]));
    printf("%d more\n", mappings() - before);
    printf("%d\n", use(library));
  } else if (!strcmp(how, "often") || !strcmp(how, "elsewhere")) {
    /* Loaded over and over, but used only the last time: always at the same place, or each time at another one. Later loads leave
       nothing behind. */
    int is_often = how[0] == 'o', before = 0;
    for (int i = 0; i < 1200; i++) {
      void *library = open_it(path);
      Dl_info found = {0};
      if (!is_often && library) dladdr(dlsym(library, "steps"), &found);
      if (library) dlclose(library);
      if (!is_often) mmap(found.dli_fbase, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (i == 100) before = mappings();
    }
    if (is_often) printf("%d more\n", mappings() - before);
    printf("%d\n", use(open_it(path)));
  } else if (!strcmp(how, "scarce")) {
    /* No more files can be opened than the loader needs; once there are some, another thread is at work in the library. */
    struct rlimit limit = {48, 48};
    pthread_t thread;
    int last = -1;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int file; (file = open("/dev/null", O_RDONLY)) >= 0;) last = file;
    close(last);
    void *library = open_it(path);
    for (int file = 8; file < last; file++) close(file);
    pthread_create(&thread, 0, at_work, library);
    for (int i = 0; i < 20; i++) dlclose(open_it(arguments[3]));
    stop = 1;
    pthread_join(thread, 0);
    printf("%d\n", use(library));
  } else if (!strcmp(how, "among")) {
    /* Among as many others as the last argument says, all in one folder. */
    char other[4096];
    for (int i = 0; i < atoi(arguments[4]); i++) {
      snprintf(other, sizeof other, "%s/%d.so", arguments[3], i);
      open_it(other);
    }
    printf("%d\n", use(open_it(path)));
  } else if (!strcmp(how, "denied")) {
    /* No memory may be executed that could be written before, here and in what is executed. */
    prctl(65, 1, 0, 0, 0);
    execl("/proc/self/exe", arguments[0], "once", path, (char *)0);
  } else if (!strcmp(how, "blocked")) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    printf("%d\n", use(open_it(path)));
  } else if (!strcmp(how, "forked")) {
    void *library = open_it(path);
    fflush(stdout);
    if (fork() == 0) { printf("%d\n", use(library)); fflush(stdout); _exit(0); }
    wait(0);
    if (fork() == 0) { printf("%d\n", use(open_it(arguments[count - 1]))); fflush(stdout); _exit(0); }
    wait(0);
  } else if (!strcmp(how, "reloaded")) {
    dlclose(open_it(path));
    void *library = open_it(path);
    fflush(stdout);
    if (fork() == 0) { printf("%d\n", use(library)); fflush(stdout); _exit(0); }
    wait(0);
  } else if (!strcmp(how, "threads")) {
    pthread_t thread[8];
    for (int i = 0; i < 8; i++)
      pthread_create(&thread[i], 0, user, arguments[2 + i % (count - 2)]);
    for (int i = 0; i < 8; i++) {
      void *sum;
      pthread_join(thread[i], &sum);
      printf("%ld\n", (long)sum);
    }
  }
  return 0;
}
