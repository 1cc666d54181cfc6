// SPDX-License-Identifier: MIT
// BUILD: -O1 -fcf-protection=none
// STRESS: tiny-cache
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=signals
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=tiny-cache
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=tiny-blocks
//
// Calls that do not return where they were made, and returns that no call was made for: by code
// that changes its return address in memory, takes it off the stack, or pushes one. And the same
// call from many places, so that it has more than one copy.
#include <stdio.h>

#include "../../include/muninn/client.h"

#define NAKED(name, ...) __asm__(".text\n.globl " #name "\n" #name ":\n" __VA_ARGS__)

int by_thunk(int n), skips(int n), pops(int n), pushes(int n), twice(int n), drops(int n);
unsigned long below(void);

// As compilers called through pointers when branches were not to be predicted.
NAKED(by_thunk, "lea add_one(%rip), %r11\n call 1f\n 0: pause\n jmp 0b\n"
                "1: mov %r11, (%rsp)\n ret\n"
                "add_one: lea 1(%rdi), %eax\n ret\n");
// Data stands behind the call, and the callee knows.
NAKED(skips, "mov %edi, %eax\n call skip_data\n .long 0xffffffff\n add $2, %eax\n ret\n"
             "skip_data: push %rcx\n mov 8(%rsp), %rcx\n add (%rcx), %eax\n add $4, %rcx\n"
             "mov %rcx, 8(%rsp)\n pop %rcx\n ret\n");
NAKED(pops, "mov %edi, %eax\n call pop_it\n add $3, %eax\n ret\n"
            "pop_it: pop %rdx\n add $4, %eax\n jmp *%rdx\n");
NAKED(pushes, "lea 1f(%rip), %rdx\n push %rdx\n lea 5(%rdi), %eax\n ret\n"
              "1: add $6, %eax\n ret\n");
// The second return is to the caller of this function's caller.
NAKED(drops, "mov %edi, %eax\n call drop_one\n mov $0, %eax\n ret\n"
             "drop_one: add $8, %rsp\n add $7, %eax\n ret\n");
// One call that is reached from three places, each of them the middle of the other.
NAKED(twice, "mov %edi, %eax\n test $1, %edi\n jne 2f\n add $8, %eax\n test $2, %edi\n jne 3f\n"
             "add $16, %eax\n 2: add $32, %eax\n 3: call add_hundred\n add $64, %eax\n ret\n"
             "add_hundred: add $100, %eax\n ret\n");
// What a return leaves behind is what it took.
NAKED(below, "call 1f\n 0: mov -8(%rsp), %rax\n lea 0b(%rip), %rcx\n sub %rcx, %rax\n ret\n"
             "1: ret\n");

int main(void)
{
    long sum = 0, left = 0;
    for (int i = 0; i < 20000; i++) {
        sum += by_thunk(i) + 3 * skips(i) + 5 * pops(i) + 7 * pushes(i) + 11 * twice(i) +
               13 * drops(i);
        unsigned long distance = below();
        (void)MUNINN_MAKE_MEM_DEFINED(&distance, sizeof(distance));
        left += distance != 0;
    }
    printf("%ld, %ld left behind\n", sum, left);
    return 0;
}
