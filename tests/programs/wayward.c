/* Cases that are hard on whoever runs them: the first word says what, a number of 8 or more that it goes wrong. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often this was called, in all processes. */
static long calls(void)
{
    FILE *file = fopen("calls", "a+");
    fputc('x', file);
    fflush(file);
    fseek(file, 0, SEEK_END);
    long count = ftell(file);
    fclose(file);
    return count;
}

int main(int count, char **words)
{
    if (count < 3 || atoi(words[2]) < 8)
        return 0;
    if (!strcmp(words[1], "group")) {
        /* Twice, so that who looks where it crashed is met, too. */
        kill(0, SIGUSR1);
        abort();
    }
    if (calls() <= 2)
        abort();
    for (;;)
        pause();
}
