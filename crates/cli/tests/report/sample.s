# A program of three functions whose blocks and lines do not depend on any compiler.
# Assembled with: cc -nostdlib -nostartfiles -Wl,-e,main -Wl,--build-id
        .text
        .file 1 "/src/demo/a.c"
        .file 2 "/src/demo/lib/b.h"
        .globl main
        .type main, @function
main:   .cfi_startproc
        .loc 1 3
        test %edi, %edi
        je .Lelse
        .loc 1 4
        mov $7, %esi
        call helper
        .loc 1 5
        jmp .Ldone
.Lelse: .loc 1 7
        mov $9, %eax
.Ldone: .loc 1 9
        nop
        .loc 2 12
        ret
        .cfi_endproc
        .size main, .-main
        .type helper, @function
helper: .cfi_startproc
        .loc 1 20
        cmp $5, %esi
        jg .Lmore
        .loc 1 21
        ret
.Lmore: .loc 1 22 is_stmt 0
        nop
        .loc 1 23 is_stmt 1
        ret
        .cfi_endproc
        .size helper, .-helper
        .type unused, @function
unused: .cfi_startproc
        .loc 2 30
        mov %edi, %eax
        ret
        .cfi_endproc
        .size unused, .-unused
        .section .debug_abbrev, "", @progbits
        .uleb128 1, 0x11
        .byte 0
        .uleb128 0x10, 0x17, 0, 0
        .byte 0
        .section .debug_info, "", @progbits
        .long .Lend - .Lstart
.Lstart:.value 4
        .long .debug_abbrev
        .byte 8
        .uleb128 1
        .long .Lline
.Lend:
        .section .debug_line, "", @progbits
.Lline:
        .section .note.GNU-stack, "", @progbits
