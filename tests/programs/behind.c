// Loops right behind a system call: of seven bytes, and of four, where no jump fits.

long behind(long process, long zero, long times);
long closely_behind(long file, long zero, long times);

#define BEHIND(name, number)                                                                                \
    __asm__(".text\n.globl " name "\n.type " name ",@function\n.p2align 4\n" name ":\n" number "\nsyscall\n" \
            "2: add $1,%rax\ndec %rdx\njns 2b\nret\n.size " name ",.-" name "\n")

BEHIND("behind", "mov $39,%eax");
BEHIND("closely_behind", "xor %eax,%eax");

int main(void) {
    for (long times = 0; times < 5; times++) {
        behind(0, 0, times);
        closely_behind(77, 0, times);
    }
    return 0;
}
