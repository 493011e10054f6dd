# Ends with code 7 after exactly 2 + 3 * 10 + 2 + 3 + 3 + 3 instructions, without any library:
# a loop of ten rounds, a call and its return, three bytes copied by one instruction, exit.
    .globl _start
_start:
    mov $10, %ecx
    xor %eax, %eax
round:
    add %ecx, %eax
    dec %ecx
    jnz round
    call leaf
behind:
    nop
    lea from(%rip), %rsi
    lea to(%rip), %rdi
    mov $3, %ecx
copy:
    rep movsb
    mov $60, %eax
    mov $7, %edi
    syscall
leaf:
    ret
    .bss
from: .zero 8
to: .zero 8
