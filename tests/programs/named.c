/* Says which file is mapped where its own header is, as those ask who put names to a program's stack (Rust's panics). */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

extern const char __ehdr_start[];

/* What fills the page of the header, so that no code is in it. */
__asm__(".pushsection .note.filling, \"a\", @note\n.long 0, 6000, 0\n.zero 6000\n.popsection");

__attribute__((noinline)) static int is_here(const char *line) {
  unsigned long start, end, here = (unsigned long)__ehdr_start;
  return sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= here && here < end;
}

int main(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps && fgets(line, sizeof line, maps))
    if (is_here(line)) {
      const char *path = strchr(line, '/');
      printf("%s %s", !memcmp(__ehdr_start, "\177ELF", 4) ? "header" : "?", path ? path : "?");
    }
  return 4;
}
