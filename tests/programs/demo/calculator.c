/* A calculator in reverse Polish notation: "calculator 3 4 + 2 ^" prints 49.
 *
 * Small enough to be read in a minute, yet with what makes machine code interesting to map: a
 * switch that becomes a jump table, calls through a table of functions, loops inside each other
 * and a path that never returns. */
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double (*constant)(void);

static double one_half(void) { return 0.5; }
static double a_dozen(void) { return 12.0; }
static double pi(void) { return 3.141592653589793; }

static const struct {
    const char *name;
    constant value;
} constants[] = { { "half", one_half }, { "dozen", a_dozen }, { "pi", pi } };

static void __attribute__((noreturn)) fail(const char *why, const char *word)
{
    fprintf(stderr, "calculator: %s: %s\n", word, why);
    exit(1);
}

static double power(double base, double exponent)
{
    double result = 1;
    for (; exponent >= 1; exponent -= 1)
        result *= base;
    return result;
}

/* Applies one operator to the two topmost numbers. */
static double apply(char operator, double left, double right, const char *word)
{
    switch (operator) {
    case '*': return left * right;
    case '+': return left + right;
    case '-': return left - right;
    case '/': return left / right;
    case '%': return left - right * (long)(left / right);
    case '^': return power(left, right);
    case '<': return left < right ? left : right;
    case '>': return left > right ? left : right;
    default: fail("no such operator", word);
    }
}

static bool push_constant(struct stack *stack, const char *word)
{
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (strcmp(constants[i].name, word) == 0)
            return stack_push(stack, constants[i].value());
    return false;
}

static void step(struct stack *stack, const char *word)
{
    char *end;
    double left, right, number = strtod(word, &end);
    if (end != word && *end == '\0') {
        if (!stack_push(stack, number))
            fail("too many numbers", word);
    } else if (!push_constant(stack, word)) {
        if (!stack_pop(stack, &right) || !stack_pop(stack, &left))
            fail("too few numbers", word);
        stack_push(stack, apply(*word, left, right, word));
    }
}

int main(int count, char **words)
{
    struct stack stack = { .count = 0 };
    for (int i = 1; i < count; i++)
        step(&stack, words[i]);
    for (double number; stack_pop(&stack, &number);)
        printf("%g\n", number);
    return 0;
}
