// What C++ adds to machine code: virtual calls, templates of the library, guards of static objects,
// thread-local objects, switches over what the compiler knows. Exceptions are in `throwing.cpp`.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#define APART __attribute__((noinline))

long throwing();
volatile int zero;

namespace {

struct Shape {
  virtual ~Shape() { std::putchar('.'); }
  virtual double area() const = 0;
  virtual const char *name() const { return "shape"; }
  APART double doubled() const { return area() * 2; }
};
struct Square : Shape {
  double side;
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
};
struct Named {
  virtual const char *name() const { return "named"; }
  virtual ~Named() = default;
};
struct Circle : Shape, virtual Named {
  double radius;
  explicit Circle(double r) : radius(r) {}
  double area() const override { return 3 * radius * radius; }
  const char *name() const override { return "circle"; }
};

// The last thing it does is a virtual call, which may become a jump.
APART const char *virtual_tail(const Shape &s) { return s.name(); }
APART const char *through_virtual_base(const Named &n) { return n.name(); }

enum class Op : unsigned char { Add, Sub, Mul, Div, Neg, Abs, Min };

APART long apply(Op op, long a, long b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return b ? a / b : 0;
    case Op::Neg: return -a;
    case Op::Abs: return std::labs(a);
    case Op::Min: return std::min(a, b);
  }
  __builtin_unreachable();
}

APART std::string bytes(const std::string &text) {
  std::string out;
  for (unsigned char c : text) {
    switch (c >> 4) {
      case 0: out += "\\0"; break;
      case 1: out += '1'; break;
      case 2: out.push_back(static_cast<char>(c)); break;
      case 3: out.insert(0, 1, static_cast<char>(c)); break;
      case 4: out += "U"; break;
      case 5: out += out.size() > 3 ? "long" : "short"; break;
      case 6: out.append(2, static_cast<char>(c)); break;
      case 7: if (!out.empty()) out.pop_back(); break;
      case 8: case 9: case 10: case 11: out += '?'; break;
      default: out += "!!";
    }
  }
  return out;
}

struct Counter {
  static int alive;
  int number;
  Counter() : number(++alive) {}
  Counter(const Counter &) : number(++alive) {}
  ~Counter() { --alive; }
};
int Counter::alive;

APART Counter &guarded_static() {
  static Counter once;
  return once;
}
thread_local std::string per_thread = "thread";
thread_local int plain_thread_local = 3;

APART long containers() {
  std::map<std::string, int> words;
  std::istringstream in("the slice of the program that the fleet observes of itself");
  for (std::string word; in >> word;) words[word]++;
  std::vector<std::pair<int, std::string>> order;
  for (const auto &[word, count] : words) order.emplace_back(count, word);
  std::sort(order.begin(), order.end(), std::greater<>());
  std::unordered_map<int, std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 5; i++) {
    if (i % 2) shapes[i] = std::make_unique<Square>(i);
    else shapes[i] = std::make_unique<Circle>(i);
  }
  double area = 0;
  for (const auto &[key, shape] : shapes) area += shape->doubled() + std::strlen(virtual_tail(*shape)) + key;
  std::vector<int> numbers(60);
  for (int i = 0; i < 60; i++) numbers[i] = i * 37 % 61;
  std::sort(numbers.begin(), numbers.end());
  std::rotate(numbers.begin(), numbers.begin() + 3, numbers.end());
  std::stable_sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 7 < b % 7; });
  return static_cast<long>(area) + numbers[5] + order.front().first + std::count(numbers.begin(), numbers.end(), 9);
}

struct Visitor {
  long operator()(int i) const { return i; }
  long operator()(double d) const { return static_cast<long>(d * 2); }
  long operator()(const std::string &s) const { return static_cast<long>(s.size()); }
  long operator()(const std::vector<int> &v) const { return v.at(0); }
};

APART long variants() {
  std::vector<std::variant<int, double, std::string, std::vector<int>>> all{1, 2.5, std::string("three"), std::vector<int>{4}};
  long sum = 0;
  for (auto &v : all) sum += std::visit(Visitor{}, v);
  auto copy = all;
  copy[0] = std::string("changed");
  return sum + static_cast<long>(copy[0].index());
}

APART long functions() {
  int captured = 7;
  std::function<int(int)> f = [captured](int x) { return x + captured; };
  int (*plain)(int) = [](int x) { return x * 3; };
  std::vector<std::function<int(int)>> all{f, plain, [&](int x) { return captured += x; }};
  long sum = 0;
  for (auto &g : all) sum = sum * 10 + g(2);
  using member = double (Shape::*)() const;
  member m = &Shape::area;
  return sum + static_cast<long>((Square(3).*m)());
}

template <int N> APART int depth(int x) {
  if constexpr (N == 0) return x;
  else return x > N ? depth<N - 1>(x - 1) : depth<N - 1>(x + 1) + 1;
}

struct AtEnd {
  ~AtEnd() { std::puts("static destroyed"); }
} at_end;

}  // namespace

int main() {
  long sum = 0;
  for (int op = 0; op < 7; op++) sum += apply(static_cast<Op>(op), 40 + zero, op);
  Circle circle(1);
  std::cout << "ops " << sum << ' ' << through_virtual_base(circle) << '\n';
  std::cout << "bytes " << bytes("A b\t0123 {zyx} \xc3\xa4 PQRS \x01\x11 \x99") << '\n';
  std::cout << "containers " << containers() << " variants " << variants() << " functions " << functions() << '\n';
  guarded_static().number += 2;
  per_thread += std::to_string(guarded_static().number + plain_thread_local++);
  std::cout << per_thread << ' ' << depth<6>(4) << ' ' << Counter::alive << '\n';
  std::cout << "thrown " << throwing() << std::endl;
  return 0;
}
