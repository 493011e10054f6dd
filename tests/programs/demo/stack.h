/* A stack of numbers that refuses to overflow or to run empty. */
#ifndef STACK_H
#define STACK_H

#include <stdbool.h>

enum { STACK_DEPTH = 64 };

struct stack {
    double items[STACK_DEPTH];
    int count;
};

bool stack_push(struct stack *stack, double number);
bool stack_pop(struct stack *stack, double *number);

#endif
