/* Jumps through pointers, by which a function is replaced by another: with room for a jump at its start, without, and
   with another jump there and nothing else. */
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

typedef int function(int);

int called(int n);
APART int called(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

/* The first calls behind three bytes; the second is two bytes without any behind it; the third calls behind seven. */
int crowded(int n), passes_on(int n), roomy(int n);
#define FUNCTION(name, ...)                                                                       \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" __VA_ARGS__ \
          ".cfi_endproc\n.size " #name ", .-" #name "\n")
#define BEHIND "  leal 1(%rax,%rbx), %eax\n  imull $3, %eax, %eax\n  popq %rbx\n  .cfi_def_cfa_offset 8\n  ret\n"
#define PUSH "  pushq %rbx\n  .cfi_def_cfa_offset 16\n  movl %edi, %ebx\n"
FUNCTION(crowded, PUSH "  call called\n" BEHIND "  .p2align 4\n");
FUNCTION(passes_on, "  .byte 0xeb, 0\n");
FUNCTION(roomy, PUSH "  leal 7(%rbx), %edi\n  nop\n  call called\n" BEHIND);

static function *volatile all[] = {crowded, passes_on, roomy, called};

int chooses(function *f, int n);
APART int chooses(function *f, int n) { return f(n + 2); }

int looks_up(int which, int n);
APART int looks_up(int which, int n) { return all[which & 3](n); }

int main(void) {
  int sum = 0;
  for (int i = 0; i < 40; i++) {
    sum += chooses(all[i % 3], i);
    sum += looks_up(i, i);
    sum += crowded(i) + roomy(i);
  }
  return sum & 1;
}
