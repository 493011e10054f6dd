/* A variable that is far away from the code that uses it, behind 1.5 GiB of others. */

#include <stdio.h>

static char room[3u << 29];
static int far __attribute__((section(".bss.far")));

__attribute__((noinline)) static void put(int at)
{
    if (at & 1)
        room[at] = (char)far++;
    else
        far += 2;
}

int main(void)
{
    for (int at = 0; at < 20; at++)
        put(at);
    printf("%d %d\n", room[7], far);
    return 0;
}
