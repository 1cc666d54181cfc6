// SPDX-License-Identifier: MIT
//
// 1 instruction, 1000 rounds of 4 with one read and one write each, 3 to exit.
    .globl _start
_start:
    mov $1000, %ecx
again:
    mov cell(%rip), %rax
    mov %rax, cell+8(%rip)
    dec %ecx
    jnz again
    mov $231, %eax
    xor %edi, %edi
    syscall
    .bss
cell:
    .skip 16
    .section .note.GNU-stack,"",@progbits
