// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
//
// loop, loope, loopne, jrcxz, jecxz, with 32-bit counters by prefix: branches that read a register,
// reach only 8 bits far and leave the flags alone.
#include "guest.h"

#define RUN(code, count_in) \
    ({ \
        uint64_t count = (count_in), sum = 0, flags; \
        __asm__ volatile("xor %%edx, %%edx; " code "\n\tpushfq\n\tpop %2" \
                         : "+c"(count), "+a"(sum), "=r"(flags) : : "memory", "cc", "rdx"); \
        say("%-9s rcx=%lx sum=%lu flags=%lx\n", #count_in, count, sum, flags & 0x8d5); \
    })

int main(void)
{
    say("loop\n");
    RUN("stc; 1: lea 1(%1), %1; loop 1b", 1000);
    RUN("stc; 1: lea 1(%1), %1; loop 1b", 1);
    say("loop with a 32-bit counter\n");
    RUN("clc; 1: lea 3(%1), %1; addr32 loop 1b", 0x500000004);
    say("loope\n");
    RUN("1: lea 1(%1), %1; cmp $7, %1; loopne 1b", 20);
    RUN("1: lea 1(%1), %1; cmp $70, %1; loopne 1b", 20);
    RUN("1: lea 1(%1), %1; test $8, %1; loope 1b", 20);
    say("jrcxz\n");
    RUN("stc; jrcxz 1f; lea 5(%1), %1; 1: lea 2(%1), %1", 0);
    RUN("stc; jrcxz 1f; lea 5(%1), %1; 1: lea 2(%1), %1", 0x100000000);
    say("jecxz\n");
    RUN("stc; jecxz 1f; lea 5(%1), %1; 1: lea 2(%1), %1", 0x100000000);
    RUN("stc; jecxz 1f; lea 5(%1), %1; 1: lea 2(%1), %1", 0x100000001);
    return 0;
}
