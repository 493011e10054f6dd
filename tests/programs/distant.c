// A jump that reaches far leads out of a block with one way on, where a probe would cost least.
#include <stdio.h>

struct node { long first, second; long *third, *fourth; };

__attribute__((noinline)) static void prepare(struct node *node, long *word) { word[1] = 3 + !node; }

__attribute__((noinline)) static long *insert(struct node *node, long *word) {
    if (word[1] != node->second) return 0;
    prepare(node, word);
    if (node->third) {
        node->third[2] = (long)word; word[3] = (long)node->third; node->third = word; word[2] = 0;
        node->third[2] = (long)word; word[3] = (long)node->third; node->third = word; word[2] = 0;
    } else {
        node->fourth = node->third = word; word[1] = 0; word[2] = 0;
        node->fourth = node->third = word; word[1] = 0; word[2] = 0;
    }
    word[2] = node->first;
    return word;
}

int main(int count, char **words) {
    struct node node = {count, 2, 0, 0};
    long word[4] = {0};
    if (count > 2) insert(&node, word);
    if (count > 3) word[1] = 2, insert(&node, word), word[1] = 2, insert(&node, word);
    puts(words[0] ? "x" : "y");
    return 0;
}
