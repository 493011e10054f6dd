/* Counts on each processor without a lock, in a restartable sequence (Linux, rseq): whoever is interrupted in it goes on at the
   abort handler, and counts again. If the kernel is not told by the instruction pointer where a thread is, counts are lost. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/rseq.h>

enum { THREADS = 4, TIMES = 300000, PROCESSORS = 4096 };

static struct { long count; char apart[56]; } counters[PROCESSORS];

static struct rseq *own(void) {
  return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Whether it has counted. The many branches make it long enough to be interrupted in. */
__attribute__((noinline)) static int count(struct rseq *rseq, unsigned turn) {
  unsigned processor = rseq->cpu_id_start;
  __asm__ goto(
      ".pushsection __rseq_cs, \"aw\"\n .balign 32\n"
      "3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n .popsection\n"
      "leaq 3b(%%rip), %%rax\n movq %%rax, %[descriptor]\n"
      "1: cmpl %[processor], %[now]\n jnz 4f\n"
      "movq %[counter], %%rax\n incq %%rax\n"
      "movl %[turn], %%ecx\n andl $63, %%ecx\n"
      "5: decl %%ecx\n js 6f\n testl $1, %%ecx\n jz 5b\n nop\n jmp 5b\n"
      "6: movq %%rax, %[counter]\n 2:\n"
      "jmp %l[counted]\n .byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n 4: jmp %l[aborted]\n"
      :
      : [descriptor] "m"(rseq->rseq_cs), [now] "m"(rseq->cpu_id), [processor] "r"(processor),
        [counter] "m"(counters[processor % PROCESSORS].count), [turn] "r"(turn)
      : "rax", "rcx", "cc", "memory"
      : counted, aborted);
counted:
  return 1;
aborted:
  return 0;
}

static void *work(void *unused) {
  struct rseq *rseq = own();
  for (unsigned turn = 0; turn < TIMES; turn++) while (!count(rseq, turn)) {}
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  cpu_set_t one;
  if (__rseq_size == 0) { puts("this system has no restartable sequences"); return 0; }
  /* All on one processor, so that they interrupt each other. */
  sched_getaffinity(0, sizeof one, &one);
  for (int first = 1, at = 0; at < CPU_SETSIZE; at++) if (CPU_ISSET(at, &one)) { if (!first) CPU_CLR(at, &one); first = 0; }
  sched_setaffinity(0, sizeof one, &one);
  for (int i = 0; i < THREADS; i++) pthread_create(threads + i, 0, work, 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
  long sum = 0;
  for (int i = 0; i < PROCESSORS; i++) sum += counters[i].count;
  printf("counted %ld of %d\n", sum, THREADS * TIMES);
  return sum != (long)THREADS * TIMES;
}
