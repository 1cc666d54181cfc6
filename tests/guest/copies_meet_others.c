// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=often
//
// A copy of holes with other loads and stores between, which have nothing to do with each other for
// some hundred rounds, until the code is made for that. Then they meet: what one stores is what
// the other loads, and it is undefined.
#include <stdio.h>
#include <string.h>

#include "../../include/muninn/client.h"

enum { BYTES = 128, BEFORE = 300, ROUNDS = 1000, LOADED_AT = 40 };

static unsigned char source[BYTES] __attribute__((aligned(64))), target[BYTES];
static unsigned char elsewhere[BYTES], v[BYTES], zero[BYTES];

typedef void Meet(void *to, void *from, void *stored, void *loaded);

#define MEET(name, ...)                                                                         \
    static __attribute__((noinline)) void name(void *to, void *from, void *stored, void *loaded) \
    {                                                                                           \
        register void *r8 __asm__("r8") = loaded;                                               \
        __asm__ volatile(__VA_ARGS__                                                            \
                         : "+D"(to), "+S"(from), "+d"(stored), "+r"(r8)                         \
                         :                                                                      \
                         : "rax", "rcx", "r9", "xmm0", "cc", "memory");                         \
    }

MEET(within, "movdqu (%%rsi), %%xmm0\n movzwl 48(%%rsi), %%ecx\n mov %%cx, (%%rdx)\n"
             "movzwl (%%r8), %%eax\n movups %%xmm0, (%%rdi)\n mov %%ax, 40(%%rdi)\n"
             "pxor %%xmm0, %%xmm0\n xor %%ecx, %%ecx\n xor %%eax, %%eax")
MEET(behind, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n movzwl 48(%%rsi), %%ecx\n"
             "mov %%cx, (%%rdx)\n movzwl (%%r8), %%r9d\n test %%rsi, %%rsi\n je 1f\n"
             "1: mov %%r9w, 40(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n xor %%r9d, %%r9d")
MEET(by_one_side, "movdqu (%%rsi), %%xmm0\n movzwl 48(%%rsi), %%ecx\n mov %%cx, (%%rdx)\n"
                  "movzwl 64(%%rsi), %%eax\n movups %%xmm0, (%%rdi)\n mov %%ax, 40(%%rdi)\n"
                  "pxor %%xmm0, %%xmm0\n xor %%ecx, %%ecx\n xor %%eax, %%eax")
MEET(of_both_sides, "mov (%%rsi), %%rax\n movzwl 48(%%rsi), %%ecx\n mov %%cx, (%%rdx)\n"
                    "movzwl (%%r8), %%r9d\n mov %%rax, (%%rdi)\n mov %%r9w, 40(%%rdi)\n"
                    "xor %%ecx, %%ecx\n xor %%eax, %%eax\n xor %%r9d, %%r9d")

MEET(behind_its_last_store, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n movzwl 48(%%rsi), %%ecx\n"
                            "mov %%cx, (%%rdx)\n mov 32(%%rsi), %%r9\n test %%rsi, %%rsi\n"
                            "je 1f\n 1: mov %%r9, 40(%%rdi)\n xor %%eax, %%eax\n"
                            "xor %%ecx, %%ecx\n xor %%r9d, %%r9d")

static void run(const char *name, Meet *meet, void *apart, void *together, void *loaded)
{
    unsigned wrong = 0;
    for (unsigned n = 0; n < ROUNDS; n++) {
        int meets = n >= BEFORE && n % 3;
        MUNINN_SET_VBITS(source, zero, BYTES);
        MUNINN_SET_VBITS(target, zero, BYTES);
        MUNINN_SET_VBITS(elsewhere, zero, BYTES);
        memset(v, 0, BYTES);
        v[3] = v[48] = 0xff;
        MUNINN_SET_VBITS(source, v, BYTES);
        meet(target, source, meets ? together : apart, loaded);
        int known = MUNINN_GET_VBITS(target, v, BYTES) == 1;
        wrong += known && (v[3] != 0xff || v[LOADED_AT] != (meets ? 0xff : 0));
    }
    printf("%s: %u wrong\n", name, wrong);
}

int main(void)
{
    run("within", within, elsewhere + 64, elsewhere, elsewhere);
    run("behind", behind, elsewhere + 64, elsewhere, elsewhere);
    run("by one side", by_one_side, elsewhere, source + 64, source);
    run("of both sides", of_both_sides, elsewhere, target + 64, target + 64);
    run("behind its last store", behind_its_last_store, elsewhere, source + 32, source);
    return 0;
}
