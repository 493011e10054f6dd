// A sandbox as of WebAssembly that was compiled ahead of time: while its code runs the base of gs leads to its memory.
#include <sys/auxv.h>
#include <sys/mman.h>

long boxed(void (*callback)(int), int times) {
    const unsigned long fsgsbase = 2;
    const long size = 1 << 16;
    if (!(getauxval(AT_HWCAP2) & fsgsbase)) {
        callback(times);
        return 0;
    }
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long before;
    __asm__ volatile("rdgsbase %0" : "=r"(before));
    __asm__ volatile("wrgsbase %0" ::"r"(memory));
    callback(times);
    __asm__ volatile("wrgsbase %0" ::"r"(before));
    long changed = 0;
    for (long at = 0; at < size; at++)
        changed += memory[at] != 0;
    return changed;
}
