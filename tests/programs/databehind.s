# What lies behind a jump is read, and its address is held: it is no place to jump to. Its bytes are instructions as well.
        .text
        .type   reads, @function
reads:  lea     data(%rip), %rdx
        and     $1, %edi
        mov     (%rdx, %rdi, 4), %eax
        jmp     *then(%rip)
data:   .long   0x90909010, 0xc3909090
        .size   reads, .-reads

        .p2align 4
        .type   more, @function
more:   lea     1(%rax), %eax
        ret
        .size   more, .-more

        .p2align 4
        .globl  main
        .type   main, @function
main:   push    %rbx
        xor     %edi, %edi
        call    reads
        mov     %eax, %ebx
        mov     $1, %edi
        call    reads
        lea     (%rbx, %rax), %esi
        lea     format(%rip), %rdi
        xor     %eax, %eax
        call    printf@plt
        mov     $4, %eax
        pop     %rbx
        ret
        .size   main, .-main

        .data
then:   .quad   more
        .section .rodata
format: .asciz  "%x\n"
        .section .note.GNU-stack, "", @progbits
