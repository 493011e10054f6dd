// 4,096 functions of one block each, which are called one after the other, once: every call is a first hit.
// With -DSHORT their code is shorter than a jump, and no filling lies between.

#ifdef SHORT
#define BODY(n) x + 1
#else
#define BODY(n) x * 3 + 1000000 + n
#endif

#define EACH_4(do, n) do(n##0) do(n##1) do(n##2) do(n##3)
#define EACH_16(do, n) EACH_4(do, n##0) EACH_4(do, n##1) EACH_4(do, n##2) EACH_4(do, n##3)
#define EACH_64(do, n) EACH_16(do, n##0) EACH_16(do, n##1) EACH_16(do, n##2) EACH_16(do, n##3)
#define EACH_256(do, n) EACH_64(do, n##0) EACH_64(do, n##1) EACH_64(do, n##2) EACH_64(do, n##3)
#define EACH_1024(do, n) EACH_256(do, n##0) EACH_256(do, n##1) EACH_256(do, n##2) EACH_256(do, n##3)
#define EACH_4096(do, n) EACH_1024(do, n##0) EACH_1024(do, n##1) EACH_1024(do, n##2) EACH_1024(do, n##3)

// The numbers are octal, and all different.
#define FUNCTION(n) static int f##n(int x) { return BODY(n); }
#define NAME(n) f##n,

EACH_4096(FUNCTION, 0)

static int (*const all[])(int) = {EACH_4096(NAME, 0)};

int main(void) {
    int x = 1;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        x = all[i](x);
    }
    return x == 42;
}
