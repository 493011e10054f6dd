// Exceptions in every position: through frames that clean up, rethrown, translated, from
// constructors, from destructors of temporaries, caught by base, by pointer, by anything.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

extern volatile int zero;
long throwing();

namespace {

int trail;
struct Trace {
  int mark;
  explicit Trace(int m) : mark(m) {}
  ~Trace() { trail = trail * 3 + mark; }
};

struct Base { virtual ~Base() = default; int code = 1; };
struct Derived : Base { Derived() { code = 2; } };
struct Other { std::string text; };

APART void thrower(int kind) {
  Trace local(kind);
  switch (kind) {
    case 0: throw 7;
    case 1: throw Derived();
    case 2: throw Other{"other"};
    case 3: throw std::runtime_error("runtime");
    case 4: throw "text";
    case 5: throw std::make_unique<int>(5).release();
    case 6: throw std::bad_alloc();
    case 7: std::vector<int>().at(static_cast<std::size_t>(zero)); break;
    case 8: std::string("abc").substr(10); break;
    case 9: throw std::make_shared<Base>();
    default: break;
  }
}

APART int through(int kind, int frames) {
  Trace one(frames);
  std::string name = "frame " + std::to_string(frames);
  if (frames == 0) thrower(kind);
  else trail += through(kind, frames - 1);
  return static_cast<int>(name.size());
}

APART int catcher(int kind) {
  try {
    Trace inside(4);
    return through(kind, 2);
  } catch (int i) {
    return i;
  } catch (const Base &b) {
    return 10 + b.code;
  } catch (Other o) {
    return static_cast<int>(o.text.size());
  } catch (const std::out_of_range &) {
    return 30;
  } catch (const std::exception &e) {
    return static_cast<int>(std::string(e.what()).size());
  } catch (int *p) {
    std::unique_ptr<int> owner(p);
    return *p;
  } catch (...) {
    return 50;
  }
}

APART int rethrower(int kind) {
  try {
    try {
      thrower(kind);
    } catch (const std::exception &) {
      Trace t(2);
      throw;
    } catch (int i) {
      throw std::runtime_error("translated " + std::to_string(i));
    }
    return 1;
  } catch (const std::runtime_error &e) {
    return e.what()[0];
  } catch (...) {
    auto kept = std::current_exception();
    try {
      std::rethrow_exception(kept);
    } catch (const Base &b) {
      return b.code;
    } catch (...) {
      return 5;
    }
  }
}

struct Half {
  Trace first{7};
  std::string second;
  explicit Half(int kind) : second("part") { thrower(kind); }
};

struct Nested {
  Half a, b;
  Nested(int x, int y) try : a(x), b(y) {
  } catch (const Other &) {
    trail++;
  }
};

APART int constructors() {
  int caught = 0;
  for (int y = 0; y < 4; y++) {
    try {
      auto n = std::make_unique<Nested>(99, y);
      caught += 100;
    } catch (int) {
      caught += 1;
    } catch (const Other &o) {
      caught += 2;
    } catch (...) {
      caught += 4;
    }
  }
  try {
    std::vector<Half> halves;
    halves.emplace_back(50);
    halves.emplace_back(51);
    halves.emplace_back(0);
  } catch (int) {
    caught += 1000;
  }
  try {
    Half *array = new Half[2]{Half(60), Half(1)};
    delete[] array;
  } catch (const Base &) {
    caught += 2000;
  }
  return caught;
}

APART void quiet() noexcept { trail += 2; }

// The only way out of the loop is an exception.
APART int endless() {
  int n = 0;
  try {
    for (;;) {
      Trace t(1);
      if (++n == 4) thrower(0);
      quiet();
    }
  } catch (int) {
    return n;
  }
}

struct Final {
  ~Final() noexcept(false) { if (!std::uncaught_exceptions()) throw 3; }
};

APART int from_destructor() {
  try {
    Final f;
    trail++;
  } catch (int i) {
    return i;
  }
  return 0;
}

[[noreturn]] APART void always(int kind) {
  Trace t(1);
  if (kind & 1) throw kind;
  throw std::string("always");
}

APART int never_returns(int kind) {
  try {
    always(kind);
  } catch (int i) {
    return i;
  } catch (std::string &s) {
    return static_cast<int>(s.size());
  }
}

APART int static_that_throws(int kind) {
  try {
    static Half once(kind);
    return static_cast<int>(once.second.size());
  } catch (...) {
    return -1;
  }
}

}  // namespace

long throwing() {
  long sum = 0;
  for (int kind = 0; kind <= 10; kind++) sum = sum * 2 + catcher(kind);
  for (int kind = 0; kind <= 4; kind++) sum += rethrower(kind);
  sum += constructors() + endless() + from_destructor() + never_returns(3) + never_returns(4);
  sum += static_that_throws(0) + static_that_throws(20) + static_that_throws(0);
  std::printf("trail %d\n", trail);
  return sum;
}
