/* Two functions that are alike: GCC, and lld if asked to, keep one. Only the second is called. */
#include <stdio.h>
static int level;
__attribute__((noinline)) static int first(int v) {
    for (int i = 0; i < v; i++) level += i * 3 ^ level;
    return level;
}
__attribute__((noinline)) static int second(int v) {
    for (int i = 0; i < v; i++) level += i * 3 ^ level;
    return level;
}
int main(int c, char **v) {
    (void)v;
    return c > 9 ? first(c) : second(c) == 77;
}
