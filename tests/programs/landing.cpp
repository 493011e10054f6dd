// A call that throws, or comes back, and an indirect one behind it: with thunks in line what is behind those is another function's, and
// with it where the first one lands.
#include <cstdio>

struct Guard {
    ~Guard() { std::puts("left"); }
};

__attribute__((noinline)) static int halve(int number)
{
    if (number % 3 == 2)
        throw number;
    return number / 2;
}

static volatile int seen;
static int (*volatile chosen)(int) = halve;

__attribute__((noinline)) static int twice(int number)
{
    Guard guard;
    seen = seen * 3 + number;
    int half = halve(number);
    return chosen(half) + 1;
}

int main()
{
    int sum = 0;
    for (int number = 0; number < 9; number++) {
        try {
            sum += twice(number);
        } catch (int odd) {
            sum += odd;
        }
    }
    std::printf("%d\n", sum);
    return 0;
}
