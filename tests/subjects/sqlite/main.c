/* Runs a file of SQL against a database in memory and prints every row. A seed stands for ?1; each statement is run
   for itself, so that those that must fail do not end the run. */
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

static char text[65536];

static int run(sqlite3 *db, const char **rest, int seed) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, *rest, -1, &statement, rest) != SQLITE_OK) {
        printf("error: %s\n", sqlite3_errmsg(db));
        return 1;
    }
    if (statement == NULL) {
        return 1;
    }
    if (sqlite3_bind_parameter_count(statement) > 0) {
        sqlite3_bind_int(statement, 1, seed);
    }
    int status;
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const unsigned char *value = sqlite3_column_text(statement, i);
            printf("%s%s", i ? "|" : "", value ? (const char *)value : "NULL");
        }
        putchar('\n');
    }
    if (status != SQLITE_DONE) {
        printf("error: %s\n", sqlite3_errmsg(db));
    }
    sqlite3_finalize(statement);
    return 0;
}

int main(int argc, char **argv) {
    FILE *in = argc > 2 ? fopen(argv[1], "r") : NULL;
    sqlite3 *db;
    if (in == NULL || sqlite3_open(":memory:", &db) != SQLITE_OK) {
        return 2;
    }
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    const char *rest = text;
    while (*rest && run(db, &rest, atoi(argv[2])) == 0) {
    }
    return sqlite3_close(db);
}
