// Instructions of a line that compilers execute earlier than the line, whether it runs or not.
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *bytes;
    size_t size;
    size_t used;
    int state;
};

__attribute__((noinline)) void *copied(void **to, char *bytes, size_t used) {
    return to ? bytes + used : bytes;
}

__attribute__((noreturn, noinline)) void fail(void **to, int state) {
    exit(state + (to == 0));
}

__attribute__((noinline)) void push(void **to, struct buffer *buffer) {
    switch (buffer->state) {
        case 1:
            fail(to, 4); // never
            break;
        case 2:
            if (buffer->size - buffer->used < 3) // never
                strcpy(buffer->bytes + buffer->used - 3, "..."); // never
            else {
                strcpy(buffer->bytes + buffer->used, "..."); // never
                buffer->used += 3; // never
            }
            /* FALLTHROUGH */
        default: {
            void *copy = copied(to, buffer->bytes, buffer->used);
            *to = copy;
        }
    }
}

int main(void) {
    struct buffer buffer = {malloc(100), 100, 5, 0};
    void *to[3];
    push(to, &buffer);
    return 0;
}
