# A system call of which nobody knows which one it is: the block ends there, and five bytes reach over its end.
        .text
        .p2align 4
        .globl  ask
        .type   ask, @function
ask:    .cfi_startproc
        movl    %edi, %eax
        syscall
        addl    $1, %eax
        ret
        .cfi_endproc
        .size   ask, .-ask
