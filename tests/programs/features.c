/* What C compilers make of switches, unlikely code, calls that do not return, tail calls, signals and
   jumps out of many frames. Prints sums, so that nothing is optimised away. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif
#define COLD __attribute__((cold, noinline))

int interpret(const unsigned char *code);
int jumps(int n);

static volatile int zero;

/* --- Switches: dense, sparse, all bytes, nested, with falling through, with ranges. --- */

APART static int dense(int n) {
  switch (n) {
    case 0: return zero + 11;
    case 1: puts("one"); /* fall through */
    case 2: return zero * 3 + n;
    case 3: return abs(zero - n);
    case 4: n += zero; break;
    case 5: n ^= 0x55; break;
    case 6: case 7: case 8: n *= 3; break;
    case 10: n = -n; break;
    default: n = 1000;
  }
  return n + 1;
}

APART static int sparse(int n) {
  switch (n) {
    case -1000: return 1;
    case 7: return 2;
    case 99: return 3;
    case 512: case 513: return 4;
    case 40000: return 5;
    case 1 << 20: return 6;
    case 0x7fffffff: return 7;
  }
  return zero;
}

/* A byte decides, and every byte but a few has a case: the table needs no compare. */
APART static int byte_kind(unsigned char c, int *state) {
  switch (c & 7) {
    case 0: *state += 1; break;
    case 1: *state -= 2; break;
    case 2: *state ^= 3; break;
    case 3: *state *= 5; break;
    case 4: *state |= 8; break;
    case 5: *state &= 0xffff; break;
    case 6: *state = -*state; break;
    case 7: *state <<= 1; break;
  }
  return *state;
}

APART static int whole_byte(unsigned char c) {
  switch (c) {
    case 0 ... 31: return zero + 1;
    case ' ': puts("blank"); return 2;
    case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
      return c - '0' + zero;
    case 'a': return abs(zero - 10);
    case 'b': return zero + 20;
    case 'c': puts("c"); return 30;
    case 'd': return zero - 40;
    case 'e': puts("e"); return 50;
    case 'f': return zero ^ 60;
    case 'g': puts("g"); return 70;
    case 'h': return zero | 80;
    case 'i': puts("i"); return 90;
    case 128 ... 255: return -c;
    default: return c * 2;
  }
}

enum colour { RED, GREEN, BLUE, CYAN, PINK, GOLD };

APART static const char *colour_name(enum colour c) {
  switch (c) {
    case RED: return "red";
    case GREEN: return "green";
    case BLUE: return "blue";
    case CYAN: return "cyan";
    case PINK: return "pink";
    case GOLD: return "gold";
  }
  __builtin_unreachable();
}

APART static int colour_work(enum colour c, int n) {
  switch (c) {
    case RED: n += abs(n); break;
    case GREEN: n -= puts("green"); break;
    case BLUE: n *= n; break;
    case CYAN: n = atoi("12") - n; break;
    case PINK: n = (int)strlen("pink") + n; break;
    case GOLD: n ^= 0x77; break;
    default: __builtin_unreachable();
  }
  return n;
}

APART static long nested(int outer, int inner) {
  long sum = 0;
  switch (outer) {
    case 0:
      switch (inner) {
        case 0: sum = 1; break;
        case 1: sum = labs(zero - 2); break;
        case 2: sum = 3 + zero; break;
        case 3: sum = putchar('n'); break;
        case 4: sum = 5; break;
        case 5: return -1;
      }
      sum *= 2;
      break;
    case 1:
      while (inner-- > 0) switch (inner % 6) {
          case 0: sum += 7; continue;
          case 1: sum -= zero; break;
          case 2: sum ^= 5; break;
          case 3: sum <<= 1; continue;
          case 4: goto out;
          case 5: sum += atoi("3"); break;
        }
      break;
    case 2: sum = inner; break;
    case 3: sum = -inner; break;
    case 4: sum = inner * 4; break;
    case 5: out: sum += 9; break;
  }
  return sum;
}

/* Duff's device: a switch into the middle of a loop. */
APART static void duff(char *to, const char *from, int count) {
  int n = (count + 7) / 8;
  switch (count % 8) {
    case 0: do { *to++ = *from++; /* fall through */
    case 7: *to++ = *from++; /* fall through */
    case 6: *to++ = *from++; /* fall through */
    case 5: *to++ = *from++; /* fall through */
    case 4: *to++ = *from++; /* fall through */
    case 3: *to++ = *from++; /* fall through */
    case 2: *to++ = *from++; /* fall through */
    case 1: *to++ = *from++;
    } while (--n > 0);
  }
}

APART static long wide_switch(unsigned long n) {
  switch (n) {
    case 0x100000000: return 1 + zero;
    case 0x100000001: return labs(zero - 4);
    case 0x100000002: return puts("wide");
    case 0x100000003: return 16 - zero;
    case 0x100000004: return 25 ^ zero;
    case 0x100000005: return 36 | zero;
    default: return -1;
  }
}

/* --- Unlikely code: split off by gcc into parts of their own. --- */

COLD static void complain(const char *what, int n) { printf("complaint: %s %d\n", what, n); }

COLD __attribute__((noreturn)) static void die(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(3);
}

APART static int guarded(int n, int limit) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    if (__builtin_expect(i == limit, 0)) {
      complain("limit", i);
      sum += i * limit;
      if (limit > 100) die("far over the limit");
      if (limit == 5) complain("five", sum);
    }
    sum += i;
  }
  return sum;
}

APART static int returns_sometimes(int n) {
  if (n > 1000) abort();
  if (n < -1000) die("never");
  return n / 2;
}

/* Nobody told the compiler that this one ends the program, unless it finds out. */
APART static void ends(int n) {
  printf("ends with %d\n", n);
  exit(n);
}

APART static void may_end(int n) {
  if (n == 77) ends(0);
  printf("goes on with %d\n", n);
}

/* --- Calls: through tables, in tail position, recursive, variadic. --- */

APART static int add(int a, int b) { return a + b + zero; }
APART static int sub(int a, int b) { return a - b - zero; }
APART static int mul(int a, int b) { return a * b + zero; }
static int (*const operations[])(int, int) = {add, sub, mul};

APART static int by_pointer(int which, int a, int b) { return operations[which](a, b); }
APART static int not_in_tail(int which, int a, int b) { return operations[which](a, b) + 1; }

APART static int even(unsigned n);
APART static int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
APART static int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }

/* A tail call in one case only: a conditional jump out of the function. */
APART static int maybe_tail(int a, int b) {
  if (a > b) return add(a, b);
  if (a == b) return sub(a, b);
  return a;
}

APART static int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

APART static double variadic(int count, ...) {
  va_list list;
  double sum = 0;
  va_start(list, count);
  for (int i = 0; i < count; i++) sum += i % 2 ? va_arg(list, double) : va_arg(list, int);
  va_end(list);
  return sum;
}

APART static long double extended(long double x) { return sinl(x) + x * 1.5L > 2 ? x / 3 : x; }
APART static _Complex double rotate(_Complex double z) { return z * 1.0i; }
APART static unsigned __int128 wide(unsigned __int128 a, unsigned long b) { return a / b + a % b; }

struct big { long field[12]; };
APART static struct big make(long n) {
  struct big b;
  for (int i = 0; i < 12; i++) b.field[i] = n + i;
  return b;
}

APART static int stack_array(int n) {
  char text[n + 16];
  memset(text, 'x', (size_t)n);
  text[n] = 0;
  return (int)strlen(text);
}

static int ascending(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

APART static int callbacks(void) {
  int numbers[] = {5, 3, 9, 1, 7, 2, 8};
  int key = 7;
  qsort(numbers, 7, sizeof *numbers, ascending);
  int *found = bsearch(&key, numbers, 7, sizeof *numbers, ascending);
  return found ? (int)(found - numbers) : -1;
}

/* --- Control that leaves by no call and no return: longjmp, signals, exit handlers. --- */

static jmp_buf buffer;
static sigjmp_buf signal_buffer;
static volatile sig_atomic_t signals;

APART static int leap(int depth) {
  if (depth == 0) longjmp(buffer, 5);
  return leap(depth - 1) + 1;
}

APART static int setjmp_switch(void) {
  volatile int rounds = 0;
  switch (setjmp(buffer)) {
    case 0: rounds = 1; leap(3); break;
    case 5: rounds += 10; break;
    default: rounds = -1;
  }
  return rounds;
}

static void count_signal(int number) { signals += number == SIGUSR1; }
static void leave_handler(int number) { siglongjmp(signal_buffer, number); }

APART static int signalled(void) {
  struct sigaction action = {.sa_handler = count_signal};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR1);
  action.sa_handler = leave_handler;
  sigaction(SIGUSR2, &action, NULL);
  sigaction(SIGSEGV, &action, NULL);
  if (sigsetjmp(signal_buffer, 1) == 0) raise(SIGUSR2);
  volatile int *volatile nowhere = NULL;
  if (sigsetjmp(signal_buffer, 1) == 0) return *nowhere;
  return signals;
}

static void at_exit(void) { puts("at exit"); }

__attribute__((constructor)) static void before(void) { puts("before main"); }
__attribute__((destructor)) static void after(void) { puts("after main"); }

/* --- A function chosen at load time. --- */
static int chosen_plain(int n) { return n + 1; }
static int (*resolve_chosen(void))(int) { return chosen_plain; }
int chosen(int n) __attribute__((ifunc("resolve_chosen")));

static long switches(void) {
  long sum = 0;
  int state = 1;
  static const int keys[] = {-1000, 7, 99, 512, 513, 40000, 1 << 20, 0x7fffffff, 5};
  for (int i = -1; i < 12; i++) sum += dense(i);
  for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) sum += sparse(keys[i]);
  for (int i = 0; i < 20; i++) sum += byte_kind((unsigned char)i, &state);
  for (int i = 0; i < 256; i++) sum += whole_byte((unsigned char)i);
  for (int c = RED; c <= GOLD; c++) sum += (long)strlen(colour_name(c)) + colour_work(c, zero + 5);
  for (int o = 0; o < 7; o++) for (int i = 0; i < 8; i++) sum += nested(o, i);
  for (unsigned long n = 0xffffffff; n < 0x100000007; n++) sum += wide_switch(n);
  return sum;
}

static long calls(void) {
  char to[32];
  long sum = 0;
  duff(to, "the device copies these bytes...", 29 + zero);
  for (int i = 0; i < 3; i++) sum += by_pointer(i, i + 5, i) + not_in_tail(i, 4, i) + maybe_tail(i, 1);
  sum += even(9) + odd(7) + ackermann(2, 2) + (long)variadic(4, 1, 2.5, 3, 4.5) + stack_array(40 + zero);
  sum += (long)extended(3.5L + zero) + (long)__real__ rotate(2.0 + 3.0i) + (long)wide((unsigned __int128)1 << 80, 12345);
  return sum + make(zero).field[7] + callbacks() + chosen(zero);
}

int main(int argc, char **argv) {
  static const unsigned char code[] = {1, 9, 2, 5, 3, 4, 2, 5, 6, 3, 7, 8, 1, 2, 9, 250, 0};
  (void)argv;
  atexit(at_exit);
  zero = argc - 1;
  printf("switches %ld\n", switches());
  printf("calls %ld\n", calls());
  printf("guarded %d %d %d\n", guarded(4, 9), guarded(9, 5), guarded(9, 7));
  printf("returns %d\n", returns_sometimes(14));
  printf("leaps %d\n", setjmp_switch());
  printf("signals %d\n", signalled());
  printf("interpreted %d\n", interpret(code));
  printf("jumps %d\n", jumps(6));
  may_end(1);
  may_end(77 + zero);
  return 1;
}
