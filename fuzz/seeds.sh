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

# Debug sections without the file around them: each behind its size in two bytes.
debug=corpus/dwarf
mkdir -p "$debug"
sections() {
    for name in info abbrev str line_str str_offsets addr ranges rnglists line; do
        : >"$work/section"
        objcopy --dump-section ".debug_$name=$work/section" "$1" "$work/ignored" 2>/dev/null || true
        size=$(wc -c <"$work/section")
        printf "\\$(printf %03o $((size % 256)))\\$(printf %03o $((size / 256)))"
        cat "$work/section"
    done
}
for version in 2 3 4 5; do
    gcc -O1 -gdwarf-$version -fPIC -shared -nostdlib -o "$work/c" "$work/bare.c"
    g++ -O2 -gdwarf-$version -fPIC -shared -nostdlib -o "$work/cc" "$work/throws.cc"
    sections "$work/c" >"$debug/c-$version"
    sections "$work/cc" >"$debug/cc-$version"
done
gcc -O2 -g -flto -fPIC -shared -nostdlib -o "$work/lto" "$work/bare.c"
sections "$work/lto" >"$debug/lto"
cp "$seeds/debug" "$debug/file"
