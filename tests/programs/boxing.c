// Calls a sandbox that calls back: one that it is linked with, or the library that its argument names.
#include <dlfcn.h>
#include <stdio.h>

typedef long box(void (*callback)(int), int times);

static int sum;

__attribute__((noinline)) static int step(int number) { return number % 3 ? number : -number; }

static void callback(int times) {
    for (int number = 0; number < times; number++)
        sum += step(number);
}

#ifdef LINKED
box boxed;
static box *find(const char *path) { return path ? 0 : boxed; }
#else
static box *find(const char *path) { return (box *)dlsym(dlopen(path, RTLD_NOW), "boxed"); }
#endif

int main(int count, char **words) {
    callback(10);
    box *in = find(count > 1 ? words[1] : 0);
    long changed = in(callback, 1000);
    callback(10);
    printf("%d, %ld bytes changed\n", sum, changed);
    return 0;
}
