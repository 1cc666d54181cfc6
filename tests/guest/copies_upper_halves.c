// SPDX-License-Identifier: MIT
// BUILD: -O1
// CPU: avx2
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=often
//
// Copies through the lower half of a vector register leave its upper half alone, and with it what
// is undefined there.
#include <stdio.h>
#include <string.h>

#include "../../include/muninn/client.h"

enum { BYTES = 64, ROUNDS = 1200 };

static unsigned char source[BYTES] __attribute__((aligned(64))), target[BYTES];
static unsigned char v[BYTES], after[BYTES], zero[BYTES];

typedef void Copy(void *to, const void *from);

#define COPY(name, ...)                                                        \
    static __attribute__((noinline)) void name(void *to, const void *from)     \
    {                                                                          \
        __asm__ volatile("vmovdqu 32(%%rsi), %%ymm0\n" __VA_ARGS__             \
                         "vextracti128 $1, %%ymm0, 32(%%rdi)\n vzeroall"       \
                         : "+D"(to), "+S"(from)::"xmm0", "xmm1", "cc", "memory"); \
    }

COPY(copied, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n pxor %%xmm0, %%xmm0\n")
COPY(copied_behind_a_branch, "test %%rsi, %%rsi\n je 1f\n 1: movdqu (%%rsi), %%xmm0\n"
                             "movups %%xmm0, (%%rdi)\n pxor %%xmm0, %%xmm0\n")
COPY(loaded, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n movdqa %%xmm1, %%xmm0\n")
COPY(moved_on, "movdqu (%%rsi), %%xmm0\n movaps %%xmm0, %%xmm1\n pxor %%xmm0, %%xmm0\n"
               "movups %%xmm1, (%%rdi)\n")

static void run(const char *name, Copy *copy)
{
    unsigned wrong = 0;
    for (unsigned n = 0; n < ROUNDS; n++) {
        for (unsigned i = 0; i < BYTES; i++)
            v[i] = (n * 7 + i * 13) % 5 < n % 3 ? (unsigned char)(n + i) : 0;
        MUNINN_SET_VBITS(target, zero, BYTES);
        MUNINN_SET_VBITS(source, v, BYTES);
        copy(target, source);
        if (MUNINN_GET_VBITS(target, after, BYTES) == 1)
            wrong += memcmp(after, v, 16) != 0 || memcmp(after + 32, v + 48, 16) != 0;
    }
    printf("%s: %u wrong\n", name, wrong);
}

int main(void)
{
    run("copied", copied);
    run("copied behind a branch", copied_behind_a_branch);
    run("loaded", loaded);
    run("moved on", moved_on);
    return 0;
}
