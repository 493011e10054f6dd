# The stack pointer is a pointer to data for a while, in front of which lies more of it.
        .data
        .fill   4096, 1, 0x5a
table:  .quad   1, 2, 3, 4, 5, 6, 7, 8, 0

        .text
        .type   sum, @function
sum:    mov     %rsp, %r8
        lea     table(%rip), %rsp
        xor     %eax, %eax
1:      pop     %rdx
        test    %rdx, %rdx
        jz      2f
        add     %rdx, %rax
        cmp     $30, %rax
        jb      1b
        add     $1, %rax
        jmp     1b
2:      mov     %r8, %rsp
        ret
        .size   sum, .-sum

        .type   changed, @function
changed: lea    table-4096(%rip), %rsi
        mov     $4096, %ecx
        xor     %eax, %eax
1:      movzbl  (%rsi), %edx
        inc     %rsi
        cmp     $0x5a, %dl
        je      2f
        inc     %eax
2:      dec     %ecx
        jnz     1b
        ret
        .size   changed, .-changed

        .globl  main
        .type   main, @function
main:   push    %rbx
        call    sum
        mov     %eax, %ebx
        call    sum
        add     %eax, %ebx
        call    changed
        add     %ebx, %eax
        pop     %rbx
        ret
        .size   main, .-main
        .section .note.GNU-stack, "", @progbits
