// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// Code whose last byte is the last of its page, with nothing mapped behind it: a ret, a jump, a
// branch never taken past the end, and a call that does not come back. Looking ahead must not fault
// and must not change what happens.
#include "smc.h"
#include <setjmp.h>

static jmp_buf home;
static uint8_t *page;

static void leave(void)
{
    longjmp(home, 1);
}

static uint8_t *place(const void *code, size_t size)
{
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    memset(page, 0xcc, PAGE);
    memcpy(page + PAGE - size, code, size);
    mprotect(page, PAGE, PROT_READ | PROT_EXEC);
    return page + PAGE - size;
}

int main(void)
{
    page = map_pages(3 * PAGE, PROT_READ | PROT_WRITE);
    munmap(page + PAGE, PAGE);
    // mov eax, 11; ret
    say("ret %d\n", call_code(place("\xb8\x0b\0\0\0\xc3", 6)));
    // jmp +7; mov eax, 12; ret; nop; jmp back
    say("jmp %d\n", call_code(place("\xeb\x07\xb8\x0c\0\0\0\xc3\x90\xeb\xf7", 11)));
    // mov eax, 13; jmp +1; ret; test eax, eax; jnz back to ret (always taken, last two bytes)
    say("jcc %d\n", call_code(place("\xb8\x0d\0\0\0\xeb\x01\xc3\x85\xc0\x75\xfb", 12)));
    // mov eax, 14; mov rdx, [rsp]; add rsp, 8; jmp rdx
    static const char by_register[] = "\xb8\x0e\0\0\0\x48\x8b\x14\x24\x48\x83\xc4\x08\xff\xe2";
    say("jmp reg %d\n", call_code(place(by_register, 15)));
    for (volatile int i = 0; i < 100; i++)
        if (setjmp(home) == 0) {
            // push rax; call rdi: never returns
            ((void (*)(void (*)(void)))place("\x50\xff\xd7", 3))(leave);
            say("FAIL came back\n");
        }
    say("call left\n");
    return 0;
}
