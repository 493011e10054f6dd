// Lines of which there are several copies: instances of a template, and a body that is put into its callers.

template <class T> T doubled(T value) {
    return value + value; /* 7 */
}

__attribute__((always_inline)) static inline int stepped(int value) {
    return value + 3; /* 7 */
}

static int up(int value) {
    return stepped(value) + 1; /* 3 */
}

static int down(int value) {
    return -stepped(value); /* 4 */
}

int main() {
    long sum = 0;
    for (int turn = 0; turn < 3; turn++) sum += doubled<int>(turn) + up(turn);
    for (long turn = 0; turn < 4; turn++) sum += doubled<long>(turn) + down(int(turn));
    return sum == 15 ? 0 : 1;
}
