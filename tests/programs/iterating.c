/* Has functions of its own by the names of some of the C library's, which are not ready before its constructors have run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int visit(struct dl_phdr_info *, size_t, void *);
static int (*iterate)(visit *, void *);
static int (*at_fork)(void (*)(void), void (*)(void), void (*)(void), void *);
static unsigned asked;

__attribute__((constructor)) static void begin(void) {
  iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  at_fork = dlsym(RTLD_NEXT, "__register_atfork");
}
int dl_iterate_phdr(visit *function, void *data) { asked++; return iterate(function, data); }
int __register_atfork(void (*a)(void), void (*b)(void), void (*c)(void), void *d) { asked++; return at_fork(a, b, c, d); }

static int count(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  *(unsigned *)data += info->dlpi_phnum != 0;
  return 0;
}
__attribute__((noinline)) static int in_child(int x) { return x * 3 % 7; }

int main(void) {
  unsigned modules = 0;
  int status;
  dl_iterate_phdr(count, &modules);
  printf("%d %u\n", modules > 2, asked);
  fflush(stdout);
  pid_t child = fork();
  if (!child) _exit(in_child(3));
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 3;
}
