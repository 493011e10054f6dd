/* Runs one file of SQL against a database in memory and prints every row; each statement that ends
   a line is run for itself, so that those that must fail do not end the run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sqlite3.h"

static int row(void *rows, int n, char **values, char **names) {
  (void)names;
  for (int i = 0; i < n; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
  putchar('\n');
  ++*(int *)rows;
  return 0;
}

int main(int argc, char **argv) {
  static char line[4096], text[16384];
  FILE *in = argc > 1 ? fopen(argv[1], "r") : NULL;
  sqlite3 *db;
  int rows = 0, errors = 0;
  /* What it calls random is printed in names: each run is to be the same. */
  sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 1, (sqlite3 *)0);
  if (in == NULL || sqlite3_open(":memory:", &db) != SQLITE_OK) return 2;
  while (fgets(line, sizeof line, in)) {
    char *message = NULL;
    if (strlen(text) + strlen(line) >= sizeof text) return 2;
    strcat(text, line);
    if (!sqlite3_complete(text)) continue;
    if (sqlite3_exec(db, text, row, &rows, &message) != SQLITE_OK) {
      printf("error: %s\n", message);
      sqlite3_free(message);
      errors++;
    }
    text[0] = 0;
  }
  fclose(in);
  printf("%d rows, %d errors\n", rows, errors);
  return sqlite3_close(db);
}
