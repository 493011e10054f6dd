# Blocks in which what is done at the start and at the end comes close together, and branches both ways of which lead to one block.
        .altmacro
        .macro  start name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:  .cfi_startproc
        .endm
        .macro  finish name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .text
# More paths than are counted as a whole. Where a way adds every register is used; behind that one is free.
        start   crowded
        .irp    register, rbx, rbp, r12, r13, r14, r15
        push    %\register
        .endr
        .irp    register, rcx, rdx, rbx, rbp, rsi, r8, r9, r10, r11, r12, r13, r14, r15
        mov     %rdi, %\register
        .endr
        .set    bit, 0
        .rept   20
        mov     %rdi, %rax
        bt      $bit, %rdi
        jc      1f
        add     %rax, %rcx
        xor     $1, %ecx
        jmp     2f
1:      sub     %rax, %rcx
        xor     $2, %ecx
2:
        .set    bit, bit + 1
        .endr
        mov     %rcx, %rax
        .irp    register, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
        add     %\register, %rax
        .endr
        .irp    register, r15, r14, r13, r12, rbp, rbx
        pop     %\register
        .endr
        ret
        finish  crowded

        start   both
        test    %edi, %edi
        js      1f
1:      ret
        finish  both

        start   both_in_front_of_a_loop
        push    %rbp
        mov     %rsp, %rbp
        test    %edi, %edi
        js      1f
1:      mov     $1, %eax
        add     %edi, %eax
        dec     %esi
        jg      1b
        leave
        ret
        finish  both_in_front_of_a_loop

        start   main
        push    %rbx
        mov     $-3, %ebx
3:      mov     %ebx, %edi
        call    both
        mov     %ebx, %edi
        mov     $4, %esi
        call    both_in_front_of_a_loop
        imul    $0x5a5a5, %ebx, %edi
        call    crowded
        inc     %ebx
        cmp     $9, %ebx
        jl      3b
        xor     %eax, %eax
        pop     %rbx
        ret
        finish  main
        .section .note.GNU-stack, "", @progbits
