/* A stack of numbers that refuses to overflow or to run empty. */
#include "stack.h"

bool stack_push(struct stack *stack, double number)
{
    if (stack->count == STACK_DEPTH)
        return false;
    stack->items[stack->count++] = number;
    return true;
}

bool stack_pop(struct stack *stack, double *number)
{
    if (stack->count == 0)
        return false;
    *number = stack->items[--stack->count];
    return true;
}
