#!/bin/sh
# Builds small programs of every shape the ELF reader distinguishes, as seeds for the targets that
# read whole files. Seeds are rebuilt, not committed. Run it in this directory; it needs gcc and g++.
set -eu
cd "$(dirname "$0")"
seeds=corpus/elf
mkdir -p "$seeds" corpus/unwind
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/plain.c" <<'C'
extern int puts(const char *);
static int one(void) { return 1; }
static int two(void) { return 2; }
int (*table[])(void) = {one, two};
int main(int n, char **v) { puts(v[0]); return table[n & 1](); }
C
cat >"$work/bare.c" <<'C'
extern int other(int);
static void *chosen(void) { return 0; }
int either(int) __attribute__((ifunc("chosen")));
int (*pointer)(int) = either;
void _start(void) { other(pointer(1)); }
C
cat >"$work/throws.cc" <<'C'
struct Guard { ~Guard(); };
int step(int);
int run(int n) { Guard guard; try { return step(n); } catch (int caught) { return caught; } }
C

gcc -O1 -o "$seeds/pie" "$work/plain.c"
gcc -O1 -no-pie -fcf-protection -Wl,-z,lazy -o "$seeds/fixed" "$work/plain.c"
gcc -O1 -Wl,-z,pack-relative-relocs -s -o "$seeds/packed" "$work/plain.c" || true
gcc -O1 -fPIC -shared -nostdlib -o "$seeds/bare" "$work/bare.c"
gcc -O1 -g -gz -fPIC -shared -nostdlib -o "$seeds/debug" "$work/bare.c"
g++ -O1 -fPIC -shared -nostdlib -s -o "$seeds/throws" "$work/throws.cc"
g++ -O1 -fPIC -shared -nostdlib -Wl,--hash-style=sysv -o "$seeds/sysv" "$work/throws.cc"
cp "$seeds"/* corpus/unwind/
