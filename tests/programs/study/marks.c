/* Marks that stay, for programs built with clang's -fsanitize-coverage.

   With inline-bool-flag the mark is in the code itself; here is only what it must be told of. With
   trace-pc-guard each probe calls a collector, as in the paper; it sets the mark of its number. If
   TOMO_STUDY_COUNTS names a file, the collector counts instead, and notes the processor's time at
   which each probe was first come to; at the end of the program all of that is written there: the time
   from start to end in nanoseconds, the number of probes, then for each its count and its time, all
   of them 64 bits wide. Programs with one thread only. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OURS __attribute__((no_sanitize("coverage")))

static struct { uint64_t count, first; } *probes;
/* Where marks go that are set before there are any, by what the loader calls. */
static unsigned char nowhere, *marks = &nowhere;
static uint64_t number, start;
static const char *path;

static OURS uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

OURS void __sanitizer_cov_bool_flag_init(char *first, char *end) {
  (void)first;
  (void)end;
}

/* Called once for each module that has probes, perhaps by several of its files: here there is one. */
OURS void __sanitizer_cov_trace_pc_guard_init(uint32_t *first, uint32_t *end) {
  if (first == end || number != 0) return;
  for (uint32_t *guard = first; guard < end; guard++) *guard = (uint32_t)number++;
  path = getenv("TOMO_STUDY_COUNTS");
  marks = calloc(number, 1);
  if (path != NULL) probes = calloc(number, sizeof *probes);
  if (marks == NULL || (path != NULL && probes == NULL)) abort();
  start = now();
}

static OURS __attribute__((noinline)) void count(uint32_t probe) {
  if (probes[probe].count++ == 0) probes[probe].first = now() - start;
}

OURS void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
  if (__builtin_expect(probes != NULL, 0)) count(*guard);
  else marks[*guard] = 1;
}

/* Behind all destructors of the program. */
static OURS __attribute__((destructor(101))) void finish(void) {
  FILE *out;
  uint64_t head[2];
  if (probes == NULL) return;
  head[0] = now() - start;
  head[1] = number;
  out = fopen(path, "wb");
  if (out == NULL) return;
  fwrite(head, sizeof head, 1, out);
  fwrite(probes, sizeof *probes, number, out);
  fclose(out);
}
