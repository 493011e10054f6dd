//! The suites: how each is built, which of its programs are probed, and how its tests are run so that
//! they say `WORD: name` of each (see `results.rs`).

/// A program with its test suite.
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// Debian's source package.
    pub(super) package: &'static str,
    pub(super) written_in: &'static str,
    /// Shell commands that build program and tests, in the source's folder; `$JOBS` at once.
    pub(super) build: &'static str,
    /// The programs that are probed, as shell words.
    pub(super) programs: &'static str,
    /// A shell command that runs the tests.
    pub(super) test: &'static str,
}

/// For what automake drives: its results are lines of the driver's already.
const CONFIGURE: &str = "./configure --disable-nls && make -j$JOBS";

pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "grep",
        package: "grep",
        written_in: "C",
        build: CONFIGURE,
        programs: "src/grep",
        test: "make -k -C tests -j$JOBS check",
    },
    Suite {
        name: "sed",
        package: "sed",
        written_in: "C",
        build: CONFIGURE,
        programs: "sed/sed",
        test: "make -k -j$JOBS check SUBDIRS=.",
    },
    Suite {
        name: "gawk",
        package: "gawk",
        written_in: "C",
        build: "./configure --disable-nls && make -C support -j$JOBS && make -j$JOBS gawk && \
                make -C extension -j$JOBS",
        programs: "./gawk",
        // A test that fails leaves a file of its name with an underscore.
        test: "cd test && rm -f _*; make -k check > said 2>&1; \
               for name in $(grep -xE '[a-z0-9_-]+' said | sort -u); do \
               if [ -e _$name ]; then echo \"FAIL: $name\"; else echo \"PASS: $name\"; fi; done",
    },
    Suite {
        name: "diffutils",
        package: "diffutils",
        written_in: "C",
        build: CONFIGURE,
        programs: "src/diff src/cmp src/diff3 src/sdiff",
        test: "make -k -C tests -j$JOBS check",
    },
    Suite {
        name: "findutils",
        package: "findutils",
        written_in: "C",
        build: CONFIGURE,
        programs: "find/find xargs/xargs locate/locate",
        test: "make -k -j$JOBS check SUBDIRS='find xargs locate tests'",
    },
    Suite {
        name: "gzip",
        package: "gzip",
        written_in: "C",
        build: "./configure && make -j$JOBS",
        programs: "./gzip",
        test: "make -k -C tests -j$JOBS check",
    },
    Suite {
        name: "bzip2",
        package: "bzip2",
        written_in: "C",
        build: "make -j$JOBS bzip2",
        programs: "./bzip2",
        test: "for level in 1 2 3; do for way in -$level -d -ds; do \
               case $way in -d*) from=bz2; to=ref;; *) from=ref; to=bz2;; esac; \
               name=\"sample$level $way\"; ./bzip2 $way < sample$level.$from | cmp - sample$level.$to \
               && echo \"PASS: $name\" || echo \"FAIL: $name\"; done; done",
    },
    Suite {
        name: "xz",
        package: "xz-utils",
        written_in: "C",
        build: "./configure --disable-nls --disable-shared && make -j$JOBS && make check TESTS=",
        programs: "src/xz/xz src/xzdec/xzdec tests/test_filter_flags tests/test_index tests/test_check",
        test: "make -k -C tests -j$JOBS check",
    },
    Suite {
        name: "m4",
        package: "m4",
        written_in: "C",
        build: CONFIGURE,
        programs: "src/m4",
        // Its driver takes checks one by one.
        test: "cd checks && export PATH=$(cd ../src; pwd):$PATH && \
               for check in $(ls | grep -xE '[0-9]+\\.[a-z0-9_]+'); do \
               if ./check-them -I ../examples $check > said 2>&1; then echo \"PASS: $check\"; \
               else echo \"FAIL: $check\"; fi; done",
    },
    Suite {
        name: "bash",
        package: "bash",
        written_in: "C",
        // Some of its reads have 0.1 ms or less to find what is there already: a race that whoever is slower loses.
        build: "sed -i 's/-t \\.0001 a <<</-t 9 a <<</; s/-t 0\\.00001 -e/-t 9 -e/' \
                tests/read2.sub tests/read7.sub && \
                ./configure --disable-nls --without-bash-malloc && make -j$JOBS && \
                make recho zecho printenv xcase",
        programs: "./bash",
        // Each script compares what bash printed with what it should; what it says then is compared.
        test: "cd tests && export THIS_SH=$(cd ..; pwd)/bash PATH=$(cd ..; pwd):$PATH \
               BASH_TSTOUT=$PWD/said; unset BASH_ENV; for run in run-*; do case $run in \
               run-all|run-minimal|run-jobs|run-gprof|*.orig|*~) continue;; esac; \
               said=$(sh ./$run < /dev/null 2>&1); if [ -z \"$said\" ]; then echo \"PASS: $run\"; \
               else echo \"SAID: $run $(echo \"$said\" | cksum | cut -d' ' -f1)\"; fi; done",
    },
    Suite {
        name: "sqlite",
        package: "sqlite3",
        written_in: "C",
        build: "./configure && make -j$JOBS testfixture",
        programs: "./testfixture",
        test: "for part in select where join index trigger view expr func cast collate insert update \
               delete like limit minmax null sort subquery tableapi trans types union vacuum \
               window with rowid pragma printf attach auth autovacuum backup blob boundary; do \
               for file in test/$part[0-9]*.test test/$part.test; do [ -f $file ] && \
               case $file in *fault*|*malloc*) ;; *) ./testfixture $file;; esac; done; done | \
               sed -n 's/^\\(.*\\)\\.\\.\\. Ok$/PASS: \\1/p; s/^! \\([^ ]*\\) expected.*/FAIL: \\1/p'",
    },
    Suite {
        name: "zstd",
        package: "libzstd",
        written_in: "C",
        build: "make -C programs -j$JOBS zstd && make -C tests -j$JOBS datagen fuzzer zstreamtest",
        programs: "programs/zstd tests/fuzzer tests/zstreamtest tests/datagen",
        test: "cd tests && said() { if \"$@\" > said 2>&1; then echo \"PASS: $*\"; \
               else echo \"FAIL: $*\"; fi; }; \
               export ZSTD_BIN=$(cd ..; pwd)/programs/zstd DATAGEN_BIN=$PWD/datagen; \
               said ./fuzzer -s1 -i40 --no-big-tests; said ./zstreamtest -s1 -i40 --no-big-tests; \
               said bash ./playTests.sh",
    },
    Suite {
        name: "jsoncpp",
        package: "libjsoncpp",
        written_in: "C++, exceptions",
        build: "g++ -O2 -Iinclude src/lib_json/*.cpp src/test_lib_json/*.cpp -o jsoncpp_test && \
                g++ -O2 -Iinclude src/lib_json/*.cpp src/jsontestrunner/main.cpp -o jsontestrunner",
        programs: "./jsoncpp_test ./jsontestrunner",
        test: "for name in $(./jsoncpp_test --list-tests); do \
               if ./jsoncpp_test --test $name > said 2>&1; then echo \"PASS: $name\"; \
               else echo \"FAIL: $name\"; fi; done; \
               python3 test/runjsontests.py ./jsontestrunner test/data 2>&1 | \
               awk '/^TESTING:/ { sub(\".*/\", \"\", $2); name = $2 \" \" $5 } \
               /^OK/ { print \"PASS: \" name } /^FAILED/ { print \"FAIL: \" name }'",
    },
];
