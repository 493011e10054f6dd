/* Loads a library after its start, in the manner that the first argument names; the others are paths of
   libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static void *user(void *path) {
  void *library = open_it(path);
  return (void *)(long)use(library);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const char *how = arguments[1], *path = arguments[2];
  if (!strcmp(how, "once")) {
    printf("%d\n", use(open_it(path)));
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
