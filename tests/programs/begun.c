/* A function that begins with the body of another one, which is written elsewhere. */

#include "begun.h"

__attribute__((noinline)) int begun(const int *x) {
    return first(x) + 1;
}

int main(int count, char **words) {
    (void)words;
    return begun(&count) - 2;
}
