// SPDX-License-Identifier: MIT
// BUILD: -O2
// STDERR: any
//
// Numbers that name no system call are ENOSYS, as the kernel says, with the argument registers
// untouched. The engine may note each on its own account, so standard error is not compared.
#include "guest.h"
#include <sys/syscall.h>

int main(void)
{
    SHOW(syscall(9999));
    SHOW(syscall(1000000));
    SHOW(syscall(-1));
    SHOW(syscall(400)); // a hole in the table
    SHOW(syscall(512)); // an x32 number

    uint64_t rax, rdi = 1, rsi = 2, rdx = 3, r8 = 5, r9 = 6;
    register uint64_t r10 __asm__("r10") = 4;
    register uint64_t r8_ __asm__("r8") = r8;
    register uint64_t r9_ __asm__("r9") = r9;
    __asm__ volatile("syscall"
                     : "=a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r10), "+r"(r8_), "+r"(r9_)
                     : "0"(99999L) : "rcx", "r11", "memory");
    say("unknown: %ld, arguments %lu %lu %lu %lu %lu %lu\n", (long)rax, rdi, rsi, rdx, r10, r8_,
        r9_);
    return 0;
}
