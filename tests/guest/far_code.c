// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
// STRESS: entries
//
// Code far above 4 GiB and in the middle of the address space, with rip-relative operands, calling
// near code and called from it, and jumping between two far places.
#include "smc.h"

static int called_back;

static int near_function(int x)
{
    called_back++;
    return x + 1000;
}

// push rbx; mov ebx, [rip+data]; add [rip+data], edi; mov rax, near; call rax;
// add eax, ebx; cmp dword [rip+data], 0; setne bl; movzx ebx, bl; add eax, ebx;
// lea rdx, [rip+data]; mov ecx, [rdx]; add eax, ecx; jmp [rip+exit]; exit: pop rbx; ret
__asm__(".data\n"
        "far_template:\n"
        "    push %rbx\n"
        "    mov far_data(%rip), %ebx\n"
        "    add %edi, far_data(%rip)\n"
        "    call *far_callback(%rip)\n"
        "    add %ebx, %eax\n"
        "    cmpl $0, far_data(%rip)\n"
        "    setne %bl\n"
        "    movzbl %bl, %ebx\n"
        "    add %ebx, %eax\n"
        "    lea far_data(%rip), %rdx\n"
        "    addl (%rdx), %eax\n"
        "    movups far_data(%rip), %xmm0\n"
        "    call 1f\n"
        "    pop %rbx\n"
        "    ret\n"
        "1:  movd %xmm0, %ecx\n"
        "    xor %ecx, %eax\n"
        "    ret\n"
        "    .balign 16\n"
        "far_callback: .quad 0\n"
        "far_data: .long 5, 0, 0, 0, 0, 0\n"
        "far_template_end:\n"
        ".text\n");
extern const uint8_t far_template[], far_callback[], far_template_end[];

static void try_at(uint64_t address)
{
    size_t size = far_template_end - far_template;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    uint8_t *code = mmap((void *)address, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
    if (code != (void *)address) {
        say("%lx: not given\n", (unsigned long)address);
        return;
    }
    memcpy(code, far_template, size);
    int (*target)(int) = near_function;
    memcpy(code + (far_callback - far_template), &target, sizeof target);
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum = sum * 3 + ((int (*)(int))code)(i);
    say("%lx: %d\n", (unsigned long)address, sum);
    munmap(code, PAGE);
}

int main(void)
{
    static const uint64_t places[] = {0x10000000,     0x70000000,     0x100000000, 0x1ffff0000,
                                      0x80000000000,  0xa0000000000,  0x40000000000, 0x7fff0000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        try_at(places[i]);
    say("called back %d\n", called_back);

    void *hinted = mmap((void *)0x80000000000, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("hint honoured %d\n", hinted == (void *)0x80000000000);
    return 0;
}
