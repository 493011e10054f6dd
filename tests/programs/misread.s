# Two tables side by side without a compare that bounds them. The second is read by way of a pointer in memory, so nothing
# in the code says where it begins, and the first one seems to go on: into the middle of an instruction that
# only the second table leads to, whose number the result shows.
        .text
        .globl  main
        .type   main, @function
main:   pushq   %rbx
        movl    $1, %edi
        leaq    Lwords(%rip), %rsi
        call    walk
        movq    %rax, %rsi
        leaq    Lformat(%rip), %rdi
        xorl    %eax, %eax
        call    printf@plt
        xorl    %eax, %eax
        popq    %rbx
        ret
        .size   main, .-main

        .type   walk, @function
walk:   pushq   %r15
        pushq   %rbx
        movq    %rsi, %rbx
        xorl    %ecx, %ecx
        leaq    Lfirst(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rax
        addq    %rdx, %rax
        jmp     *%rax
Lend:   movq    %rcx, %rax
        popq    %rbx
        popq    %r15
        ret
Lgo:    movq    Lbase(%rip), %r15
        .byte   0x0f, 0x1f, 0x40, 0x00
Lnext:  addq    $4, %rbx
Lagain: movslq  -4(%rbx), %rax
        movslq  (%r15,%rax,4), %rax
        addq    %r15, %rax
        jmp     *%rax
Ladd:   movabsq $0x1122334490909090, %rdi
        addq    %rdi, %rcx
        jmp     Lnext
Ltest:  cmpl    $0, (%rbx)
        jl      Lend
        jmp     Lnext
        .size   walk, .-walk

        .section .rodata
        .align  4
Lfirst: .long   Lend-Lfirst, Lgo-Lfirst
Lsecond:
        .long   Lagain-Lsecond, Ltest-Lsecond, Ladd-Lsecond
        .long   0x7fffffff
Lwords: .long   2, 1, 2, 2, 2, 1, -1
Lformat:
        .string "%lx\n"
        .section .data.rel.local, "aw"
        .align  8
Lbase:  .quad   Lsecond
        .section .note.GNU-stack, "", @progbits
