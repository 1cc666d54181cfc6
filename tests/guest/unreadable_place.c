// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// Calls that go where a word in memory says, by a PLT's entry and directly, while that word cannot
// be read: the handler makes it readable, and the call goes on as if nothing had been. And a
// register that is popped once more behind a call.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

extern char place[];
uint64_t by_entry(void), by_word(void), pops_again(void);

// They return by how much rsp is off behind the call.
__asm__(".data\n.p2align 12\n.globl place\nplace: .quad target\n.p2align 12\n"
        ".text\n"
        "target: ret\n"
        "entry: jmp *place(%rip)\n"
        ".globl by_entry\n"
        "by_entry: push %rbx\n    mov %rsp, %rbx\n    call entry\n    jmp tell\n"
        ".globl by_word\n"
        "by_word: push %rbx\n    mov %rsp, %rbx\n    call *place(%rip)\n"
        "tell: mov %rbx, %rax\n    sub %rsp, %rax\n    mov %rbx, %rsp\n    pop %rbx\n    ret\n"
        ".globl pops_again\n"
        "pops_again: call target\n0: sub $8, %rsp\n    pop %rax\n    lea 0b(%rip), %rcx\n"
        "    sub %rcx, %rax\n    ret\n");

static volatile int faults;

static void on_fault(int sig)
{
    (void)sig;
    faults++;
    mprotect(place, 4096, PROT_READ | PROT_WRITE);
}

int main(void)
{
    uint64_t off = 0;
    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 100; i++)
        off += by_entry() + by_word();
    for (int i = 0; i < 3; i++) {
        mprotect(place, 4096, PROT_NONE);
        off += by_entry();
        mprotect(place, 4096, PROT_NONE);
        off += by_word();
    }
    printf("%llu, %d faults, %lld left behind\n", (unsigned long long)off, faults,
           (long long)pops_again());
    return 0;
}
