# What its configuration would find out on Debian; without regular expressions, which need another library.
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' src/builtin.jq > src/builtin.inc
echo '#define JQ_VERSION "1.6"' > src/version.h
math=$(sed -n 's/^LIBM_D[A-Z]* *(\([a-z0-9]*\).*/\1/p' src/libm.h | tr 'a-z' 'A-Z' |
    grep -v -x -e POW10 -e GAMMA -e DREM -e SIGNIFICAND -e LDEXP -e SCALB | sed 's/^/-DHAVE_/')
exec gcc -O2 -g -w -D_GNU_SOURCE -I. -Isrc $math \
    -DHAVE_ALLOCA_H -DHAVE_ALLOCA -DHAVE_GMTIME -DHAVE_GMTIME_R -DHAVE_ISATTY -DHAVE_LOCALTIME_R -DHAVE_MEMMEM \
    -DHAVE_MKSTEMP -DHAVE_MODF -DHAVE_FREXP -DHAVE_LGAMMA_R -DHAVE_PTHREAD_KEY_CREATE -DHAVE_PTHREAD_ONCE -DHAVE_STRFTIME -DHAVE_STRPTIME \
    -DHAVE_TIMEGM -DHAVE_TM_TM_GMT_OFF -DHAVE_GETTIMEOFDAY -DHAVE___THREAD -DIEEE_8087 \
    -o "$OUT" src/builtin.c src/bytecode.c src/compile.c src/execute.c src/jq_test.c src/jv.c src/jv_alloc.c src/jv_aux.c \
    src/jv_dtoa.c src/jv_file.c src/jv_parse.c src/jv_print.c src/jv_unicode.c src/lexer.c src/linker.c src/locfile.c \
    src/main.c src/parser.c src/util.c -lm -lpthread
