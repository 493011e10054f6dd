/* A library that asks to be initialised first, as the threads' library of older C libraries does, and starts a thread then, which (DEAF) no
   signal reaches; and a program that has this thread run its code. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

unsigned run(unsigned (*)(unsigned), unsigned);

#ifdef LIBRARY
static sem_t asked, done;
static unsigned (*function)(unsigned);
static unsigned number;
static unsigned between(unsigned x) { return x % 3 ? x + 1 : x * 2; }
static void *serve(void *unused) {
  for (;;) {
    while (sem_wait(&asked)) {}
    number = between(function(number));
    sem_post(&done);
  }
  return unused;
}
__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  sem_init(&asked, 0, 0);
  sem_init(&done, 0, 0);
  sigset_t all, before;
  sigfillset(&all);
#ifdef DEAF
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  pthread_create(&thread, 0, serve, 0);
#ifdef DEAF
  pthread_sigmask(SIG_SETMASK, &before, 0);
#endif
}
unsigned run(unsigned (*what)(unsigned), unsigned with) {
  function = what;
  number = with;
  sem_post(&asked);
  while (sem_wait(&done)) {}
  return number;
}
#else
__attribute__((noipa)) static unsigned step(unsigned x) { return x % 5 ? x + 7 : x / 2; }
__attribute__((noipa)) static unsigned work(unsigned x) {
  for (unsigned i = 0; i < 10; i++) x = step(x + i);
  return x;
}
int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 20; i++) sum += run(work, i) + work(i);
  printf("%u\n", sum);
  return 3;
}
#endif
