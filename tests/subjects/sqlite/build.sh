# The amalgamation alone, at -O1: its build is the longest of all.
exec gcc -O1 -g -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DEFAULT_MEMSTATUS=0 \
    -I. -o "$OUT" sqlite3.c "$SUBJECT/main.c" -lm
