/* Runs a command that may not make some system calls: each fails with EPERM, as in a container that forbids
   it. Arguments: numbers of system calls, of some with a colon and the first argument with which alone they fail; `--`, the
   command. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **arguments) {
  struct sock_filter filter[64];
  unsigned short length = 0;
  int next = 1;
  for (; next < count && strcmp(arguments[next], "--") && length < 58; next++) {
    const char *first = strchr(arguments[next], ':');
    struct sock_filter number = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    struct sock_filter compare = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(arguments[next]), 0, first ? 3 : 1);
    struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[length++] = number;
    filter[length++] = compare;
    if (first) {
      struct sock_filter argument = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
      struct sock_filter same = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(first + 1), 0, 1);
      filter[length++] = argument;
      filter[length++] = same;
    }
    filter[length++] = refuse;
  }
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[length++] = allow;
  struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("seccomp");
    return 95;
  }
  if (next + 1 >= count) return 96;
  execvp(arguments[next + 1], arguments + next + 1);
  perror(arguments[next + 1]);
  return 97;
}
