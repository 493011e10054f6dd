/* Loads two libraries, then again so that each is where the other was, and uses them in a child. With LONG one with much text is
   made of this, with SHORT one that has constants where the other has text. */
#if defined LONG
int f(int x) { return x > 1 ? x + 1 : x; }
__asm__(".text\n.skip 8000, 0xcc\n");
int g(int x) { return x > 1 ? x * 3 : x; }
const int constants[500] = {1, 2, 3};
#elif defined SHORT
const int constants[2500] = {7, 7, 7, 7, [4 ... 2499] = 7};
int f(int x) {
  int sum = 0;
  for (int i = 0; i < 2500; i++) sum += constants[i];
  return x == 2 ? sum + 1 : sum;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *loaded(const char *name) {
  void *library = dlopen(name, RTLD_NOW);
  if (!library) exit(98);
  return library;
}

static int called(void *library, int x) {
  int (*f)(int) = (int (*)(int))dlsym(library, "f");
  return f(x);
}

int main(int count, char **names) {
  if (count < 3) return 97;
  void *first = loaded(names[1]), *second = loaded(names[2]);
  int sum = called(first, 1) + called(second, 1), status = 0;
  dlclose(second);
  dlclose(first);
  second = loaded(names[2]);
  first = loaded(names[1]);
  sum += called(first, 2) + called(second, 2);
  printf("parent %d\n", sum);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    printf("child %d %d\n", called(first, 3), called(second, 3));
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, &status, 0);
  printf("ended %d\n", status);
  return 3;
}
#endif
