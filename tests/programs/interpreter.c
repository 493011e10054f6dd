/* Interpreters as C programmers write them: labels as values, a table of functions that end in tail
   calls, and a switch in a loop. Each runs the same bytes. */
#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

/* Absolute label addresses: relocations, where the program is position independent. */
APART static int threaded(const unsigned char *pc) {
  static void *const labels[] = {&&halt, &&push, &&add, &&dup, &&negate, &&swap, &&skip, &&print, &&square, &&drop};
  int stack[64], top = 2;
  stack[0] = stack[1] = stack[2] = 1;
#define NEXT goto *labels[*pc++ % 10]
  NEXT;
push: stack[++top] = *pc; NEXT;
add: stack[top - 1] += stack[top]; if (top > 2) top--; NEXT;
dup: stack[top + 1] = stack[top]; top++; NEXT;
negate: stack[top] = -stack[top]; NEXT;
swap: { int t = stack[top]; stack[top] = stack[top - 1]; stack[top - 1] = t; } NEXT;
skip: if (stack[top] & 1) pc++; NEXT;
print: printf("top %d\n", stack[top]); NEXT;
square: stack[top] *= stack[top]; NEXT;
drop: if (top > 2) top--; NEXT;
halt: return stack[top];
}

/* Offsets of labels from one another: no relocations, and the base in a register. */
APART static int offsets(const unsigned char *pc) {
  static const int labels[] = {&&halt - &&halt, &&one - &&halt, &&two - &&halt, &&three - &&halt};
  int sum = 0;
  for (;;) {
    unsigned char op = *pc++;
    if (op > 9) break;
    goto *(&&halt + labels[op & 3]);
  one: sum += 1; continue;
  two: sum *= 2; continue;
  three: sum -= abs(sum) % 5; continue;
  }
halt:
  return sum;
}

struct machine { const unsigned char *pc; int a, b; };
typedef int handler(struct machine *);

static handler *const handlers[8];

/* Each handler jumps to the next: an indirect tail call, where the compiler optimises. */
static int dispatch(struct machine *m) { return handlers[*m->pc++ & 7](m); }
APART static int h_halt(struct machine *m) { return m->a + m->b; }
APART static int h_inc(struct machine *m) { m->a++; return dispatch(m); }
APART static int h_swap(struct machine *m) { int t = m->a; m->a = m->b; m->b = t; return dispatch(m); }
APART static int h_add(struct machine *m) { m->b += m->a; return dispatch(m); }
APART static int h_show(struct machine *m) { printf("machine %d %d\n", m->a, m->b); return dispatch(m); }
APART static int h_skip(struct machine *m) { if (m->a > 3) return h_halt(m); return dispatch(m); }
static handler *const handlers[8] = {h_halt, h_inc, h_swap, h_add, h_show, h_skip, h_inc, h_add};

/* A loop around a switch, which compilers may copy into every case. */
APART static int looped(const unsigned char *pc) {
  int a = 1, b = 2, steps = 0;
  while (steps++ < 100) {
    switch (*pc++) {
      case 0: return a;
      case 1: a += b; break;
      case 2: b += a; break;
      case 3: a ^= b; break;
      case 4: b = -b; break;
      case 5: if (a > b) pc++; break;
      case 6: a = abs(a); break;
      case 7: printf("loop %d %d\n", a, b); break;
      case 8: a <<= 1; break;
      case 9: b |= 1; break;
      default: a = b = 0;
    }
  }
  return b;
}

int interpret(const unsigned char *code);
int interpret(const unsigned char *code) {
  struct machine m = {code, 1, 1};
  return threaded(code) + offsets(code) + dispatch(&m) + looped(code);
}
