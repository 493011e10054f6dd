// Becomes the program that it is told.
#include <unistd.h>

int main(int count, char **words) {
    if (count > 1) {
        execv(words[1], words + 1);
    }
    return 127;
}
