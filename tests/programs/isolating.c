/* A program with planted bugs, for whoever looks for what predicts failure. Compiled with RIGHT it has none. */

#ifdef APART
#include <pthread.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int kinds[4];

static int clamp(int value, int limit) {
    if (value > limit) {
        return limit;
    }
    return value;
}

static int kind_of(int number) {
    if (number % 2 == 0) {
        return number > 50 ? 0 : 1;
    }
    return number > 50 ? 2 : 3;
}

/* What the words say: how many of each kind, and their sum. */
static int weigh(int count, char **words) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int number = atoi(words[i]);
        if (number < 0) {
            number = -number;
        }
#ifndef RIGHT
        if (number == 13) { /* the bug that shows in the output */
            number = 1000;
        }
#endif
        kinds[kind_of(number)]++;
        sum += clamp(number, 2000);
    }
    return sum;
}

static int *table_of(int number) {
    static int table[4] = {1, 2, 3, 4};
#ifndef RIGHT
    if (number == 66) { /* the bug that crashes, later */
        return NULL;
    }
#endif
    return table;
}

static int look_up(int count, char **words) {
    int *tables[16];
    int used = count < 16 ? count : 16;
    for (int i = 0; i < used; i++) {
        tables[i] = table_of(atoi(words[i]));
    }
    int sum = 0;
    for (int i = 0; i < used; i++) {
        sum += tables[i][i % 4];
    }
    return sum;
}

#ifdef APART
struct words {
    int count;
    char **words;
};

static void *look_up_these(void *words) {
    struct words *these = words;
    printf("%d\n", look_up(these->count, these->words));
    return NULL;
}

/* The same in a thread of its own. */
static void look_up_apart(int count, char **words) {
    struct words these = {count, words};
    pthread_t thread;
    pthread_create(&thread, NULL, look_up_these, &these);
    pthread_join(thread, NULL);
}
#endif

/* Right as long as only one of the two conditions holds: no branch is wrong, but one path is. */
static int combine(int count, char **words) {
    int value = count > 0 ? atoi(words[0]) : 0;
    int other = count > 1 ? atoi(words[1]) : 0;
    int scale = 1;
    int offset = 0;
    if (value > 50) {
        scale = 2;
    }
    if (other > 50) {
        offset = 7;
    }
#ifdef RIGHT
    return value * scale + offset;
#else
    return (value + offset) * scale;
#endif
}

/* Fails as long as nobody looks. */
static int shy(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int seen = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        seen |= strstr(line, "libtomo_agent") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return seen ? 0 : 1;
}

/* Fails every second time that it is run with the same file. */
static int alternate(const char *path) {
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        fclose(file);
        remove(path);
        return 1;
    }
    file = fopen(path, "w");
    if (file != NULL) {
        fclose(file);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        return 2;
    }
    if (strcmp(argv[1], "weigh") == 0) {
        int sum = weigh(argc - 2, argv + 2);
        printf("%d %d %d %d %d\n", sum, kinds[0], kinds[1], kinds[2], kinds[3]);
    } else if (strcmp(argv[1], "look") == 0) {
        printf("%d\n", look_up(argc - 2, argv + 2));
#ifdef APART
    } else if (strcmp(argv[1], "apart") == 0) {
        look_up_apart(argc - 2, argv + 2);
#endif
    } else if (strcmp(argv[1], "hang") == 0) {
        for (volatile int i = 0;; i++) {
        }
    } else if (strcmp(argv[1], "combine") == 0) {
        printf("%d\n", combine(argc - 2, argv + 2));
    } else if (strcmp(argv[1], "shy") == 0) {
        return shy();
    } else if (strcmp(argv[1], "alternate") == 0 && argc > 2) {
        return alternate(argv[2]);
    } else {
        return 1;
    }
    return 0;
}
