// Ends by an exception that nobody catches, below inner, outer and main.
#include <cstdlib>
#include <stdexcept>
#include <string>

static volatile int depth;

#define APART __attribute__((noinline, noclone))

APART static int check(const std::string &word) {
    if (word.empty())
        throw std::invalid_argument("no word"); // the throw
    return depth++;
}

namespace deep {
APART int inner(const char *word) {
    return check(word) + depth; // the way down
}
} // namespace deep

APART static int outer(const char *word) {
    std::string kept(word);
    return deep::inner(word) + (int)kept.size();
}

int main(int count, char **words) {
    int code = outer(count > 2 ? words[2] : "");
    depth++;
    return code;
}
