# A function with filler inside and behind it, one that jumps nobody knows where, and code behind that which nothing reaches.
# Assembled with: cc -nostdlib -nostartfiles -Wl,-e,main -Wl,--build-id
        .text
        .globl main
        .type main, @function
main:   .cfi_startproc
        test %edi, %edi
        je .Lelse
        mov $7, %eax
        ret
        .p2align 5
.Lelse: mov $9, %eax
        ret
        .cfi_endproc
        .size main, .-main
        .p2align 6
        .type leaps, @function
leaps:  .cfi_startproc
        mov $1, %eax
        jmp *%rdi
        mov $2, %eax
        ret
        .cfi_endproc
        .size leaps, .-leaps
        .section .note.GNU-stack, "", @progbits
