/* Sends itself a signal that it handles, one that it ignores, and one that kills it; before that an
   instruction faults, and its handler leaves by a long jump. */
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

static sigjmp_buf back;
volatile int handled;

void handler(int number) { handled += number; }
void leaver(int number) { siglongjmp(back, number); }
__attribute__((noinline)) void faults(volatile int *where) { *where = 1; }

int main(int argc, char **argv) {
  (void)argv;
  signal(SIGUSR1, handler);
  signal(SIGUSR2, SIG_IGN);
  signal(SIGSEGV, leaver);
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR2);
  if (sigsetjmp(back, 1) == 0) faults((volatile int *)(long)(argc - 1));
  if (handled != SIGUSR1) return 1;
  kill(getpid(), SIGTERM);
  return 2;
}
