// Functions of the source as compilers leave them: with several symbols, copied, split and put in place of calls. Each line that
// declares one says whether it runs.

#include <stdio.h>

#define ALONE __attribute__((noinline))

static volatile int level;

struct Base {
    int held;
    Base(int with);
    virtual ~Base();
    ALONE int first() const;
    int raised() const;
    int lowered() const;
};

// Of each there are symbols for whole objects and for parts of others.
ALONE Base::Base(int with) : held(with) { // ran
    level += with;
}

Base::~Base() { // ran
    level -= held;
}

struct Derived : virtual Base {
    Derived(int with);
    Derived(int with, int more);
    ~Derived();
};

ALONE Derived::Derived(int with) : Base(with + 1) { // ran
    level += with;
}

ALONE Derived::Derived(int with, int more) : Base(with - more) { // missed
    level += more;
}

Derived::~Derived() { // ran
    level -= 2;
}

// Members that are declared in a class and defined here, of which no code is left.
inline int Base::raised() const { // ran
    return held + level * 3;
}

inline int Base::lowered() const { // missed
    return held - level * 3;
}

// Begins with code of another function of this file.
int Base::first() const { // ran
    int sum = raised();
    for (int at = 0; at < level; at++) {
        sum += at * held;
    }
    return sum;
}

// Called with one and the same second argument: GCC makes a copy for that.
static ALONE int scaled(int value, int by) { // ran
    int sum = 0;
    for (int at = 0; at < by; at++) {
        sum += value ^ level;
        level++;
    }
    return sum;
}

static ALONE int shifted(int value, int by) { // missed
    for (int at = 0; at < by; at++) {
        level += value;
    }
    return value << by;
}

// Goes by several names.
extern "C" ALONE int middle(int value) { // ran
    return value * 5 + level;
}
extern "C" int another(int value) __attribute__((alias("middle")));

// Its beginning is put in place of calls, what rarely runs is split off.
int split(int value) { // ran
    if (__builtin_expect(value < 0, 0)) {
        printf("below %d\n", value);
        level = value;
        for (int at = 0; at < 9; at++) {
            printf("%d\n", at * level);
        }
        return level * 7;
    }
    return value + level;
}

ALONE int twice(int value) { // ran
    return split(value) + split(value + 1);
}

int main(int count, char **) { // ran
    Derived *made = new Derived(count);
    int sum = made->first() + scaled(count, 7) + scaled(level, 7) + another(count) + twice(count);
    if (count > 5) {
        Derived other(sum, count);
        sum += other.lowered() + shifted(count, 3) + middle(sum);
    }
    delete made;
    printf("%d\n", sum != 77);
    return 0;
}
