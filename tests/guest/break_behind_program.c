// SPDX-License-Identifier: MIT
// BUILD[static]: -O1 -static -no-pie -fno-pie
// BUILD[dynamic]: -O1 -no-pie -fno-pie
// MUNINN: --tool=memcheck -q
//
// The break of a program that is linked to a fixed address begins behind it (the kernel adds up to
// a gigabyte at random) and can grow by a gigabyte there: programs dumped from memory keep its
// addresses in 32 bits.
#include "guest.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

extern char end[];

int main(void)
{
    enum { NEAR = (1 << 30) + 8192, STEP = 64 << 20, STEPS = 16 };
    uint64_t begin = (uint64_t)syscall(SYS_brk, 0);
    say("behind the program %d, near %d\n", begin >= (uint64_t)end, begin - (uint64_t)end < NEAR);
    void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int grown = 0, in_32_bits = 0;
    for (int i = 1; i <= STEPS; i++) {
        char *top = (char *)sbrk(STEP) + STEP;
        grown += top == (char *)begin + (uint64_t)i * STEP;
        top[-1] = (char)i;
        in_32_bits += (uint64_t)top >> 32 == 0;
    }
    say("grown %d, in 32 bits %d, map beside it %d\n", grown, in_32_bits, mapped != MAP_FAILED);
    int wrong = 0;
    for (int i = 1; i <= STEPS; i++)
        wrong += ((char *)begin)[(uint64_t)i * STEP - 1] != (char)i;
    say("wrong %d, back %d\n", wrong, brk((char *)begin + 4096));
    // What does not fit is refused, and malloc finds other memory.
    char *much = malloc(100 << 20);
    char *block = malloc(1000);
    memset(much, 1, 100 << 20);
    say("malloc %d\n", much && block && much[(100 << 20) - 1] == 1);
    return 0;
}
