/* Inlined where `begun` begins. */








static inline int first(const int *x) {
    return *x;
}
