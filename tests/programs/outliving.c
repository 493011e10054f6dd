/* Goes on in a process of its own, which waits to be told and then starts this program again: `by_all` runs in the first process,
   `by_child` in the second and `after_exec` in the program that is started. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORK(name, number)                              \
  __attribute__((noinline)) int name(unsigned x) {      \
    static volatile unsigned sum;                       \
    for (unsigned i = 0; i < 8; i++) switch ((x + i) % 5) { \
      case 0: sum += number; break;                     \
      case 1: sum ^= x; break;                          \
      case 2: sum *= 3; break;                          \
      case 3: sum -= i; break;                          \
      default: sum |= 1;                                \
    }                                                   \
    return number;                                      \
  }
WORK(by_all, 1) WORK(by_child, 2) WORK(after_exec, 5)

int main(int count, char **words) {
  char told;
  int status = 0;
  if (count > 1) return after_exec(count);
  by_all(count);
  if (fork()) return 6;
  setsid();
  if (read(0, &told, 1) != 1) return 1;
  by_child(count);
  pid_t child = fork();
  if (!child) {
    execl("/proc/self/exe", words[0], "again", (char *)0);
    return 2;
  }
  waitpid(child, &status, 0);
  printf("ended with %d\n", WEXITSTATUS(status));
  return 0;
}
