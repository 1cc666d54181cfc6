// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=often
//
// Bit fields: bytes of which some bits are never defined are loaded and masked, or tested. What is
// kept of them is as undefined as it was, bit by bit, and the rest is not; wherever the mask stands,
// whatever it leaves out, and whether it fits the operand or not.
#include <stdio.h>
#include <string.h>

#include "../../include/muninn/client.h"

enum { TIMES = 3000 };

static unsigned char source[8] __attribute__((aligned(8))), result[8], zero[8];

#define MASK(name, ...)                                                                \
    static __attribute__((noinline)) void name(void *to, const void *from)             \
    {                                                                                  \
        __asm__ volatile(__VA_ARGS__                                                   \
                         : "+D"(to), "+S"(from)::"rax", "rcx", "rdx", "cc", "memory"); \
    }

MASK(one_byte, "movzbl (%%rsi), %%eax\n and $0x0c, %%eax\n mov %%rax, (%%rdi)\n xor %%eax, %%eax")
MASK(with_or, "movzbl (%%rsi), %%eax\n mov %%esi, %%ecx\n or $0xf3, %%eax\n mov %%rax, (%%rdi)\n"
              "xor %%eax, %%eax")
MASK(two_bytes, "movzwl (%%rsi), %%edx\n lea 1(%%rsi), %%rax\n and $0x4080, %%edx\n"
                "mov %%rdx, (%%rdi)\n xor %%edx, %%edx")
MASK(half_of_two, "movzwl (%%rsi), %%edx\n and $0x80, %%edx\n mov %%rdx, (%%rdi)\n xor %%edx, %%edx")
MASK(four_bytes, "mov (%%rsi), %%eax\n and $0x81018101, %%eax\n mov %%rax, (%%rdi)\n"
                 "xor %%eax, %%eax")
MASK(eight_bytes, "mov (%%rsi), %%rax\n and $-16, %%rax\n mov %%rax, (%%rdi)\n xor %%eax, %%eax")
MASK(all_but_the_top, "mov (%%rsi), %%rax\n and $0x7f7f7f7f, %%rax\n mov %%rax, (%%rdi)\n"
                      "xor %%eax, %%eax")
MASK(twice, "movzbl (%%rsi), %%eax\n and $0x3c, %%eax\n or $0x30, %%eax\n mov %%rax, (%%rdi)\n"
            "xor %%eax, %%eax")
MASK(stored_before, "movzbl (%%rsi), %%eax\n mov %%eax, 4(%%rdi)\n and $0x0c, %%eax\n"
                    "mov %%eax, (%%rdi)\n xor %%eax, %%eax")
MASK(moved_before, "movzbl (%%rsi), %%eax\n mov %%eax, %%ecx\n and $0x0c, %%eax\n"
                   "mov %%eax, (%%rdi)\n mov %%ecx, 4(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx")
MASK(behind_a_branch, "movzbl (%%rsi), %%eax\n test %%rsi, %%rsi\n je 1f\n and $0x0c, %%eax\n"
                      "1: mov %%rax, (%%rdi)\n xor %%eax, %%eax")
MASK(part_of_it, "movzbl (%%rsi), %%eax\n and $0x0c, %%al\n mov %%rax, (%%rdi)\n xor %%eax, %%eax")

// Of a test the result is one bit: undefined if any that it looks at is.
MASK(test_of_a_byte, "xor %%eax, %%eax\n testb $0x24, (%%rsi)\n setne %%al\n mov %%rax, (%%rdi)\n"
                     "xor %%eax, %%eax")
MASK(test_of_four, "xor %%eax, %%eax\n testl $0x01020408, (%%rsi)\n sete %%al\n"
                   "mov %%rax, (%%rdi)\n xor %%eax, %%eax")
MASK(test_of_one_of_four, "xor %%eax, %%eax\n testl $0x400, (%%rsi)\n sete %%al\n"
                          "mov %%rax, (%%rdi)\n xor %%eax, %%eax")

typedef struct Form {
    void (*run)(void *to, const void *from);
    unsigned long bits; // that a test looks at; 0: it is no test
} Form;
static const Form forms[] = {
    {one_byte, 0}, {with_or, 0}, {two_bytes, 0}, {half_of_two, 0}, {four_bytes, 0},
    {eight_bytes, 0}, {all_but_the_top, 0}, {twice, 0}, {stored_before, 0}, {moved_before, 0},
    {behind_a_branch, 0}, {part_of_it, 0}, {test_of_a_byte, 0x24}, {test_of_four, 0x01020408},
    {test_of_one_of_four, 0x400},
};
enum { FORMS = sizeof(forms) / sizeof(*forms) };

static unsigned long random_bits(void)
{
    static unsigned long seed = 12345;
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed >> 20 ^ seed << 27;
}

// What an instruction makes of bits that are undefined follows from what it makes of zeros and ones
// there: those that differ.
static unsigned long expected(const Form *form, unsigned long v)
{
    unsigned long zeros = 0, ones = 0, none = 0, in_two = 0;
    if (form->bits)
        return (v & form->bits) != 0;
    form->run(&zeros, &none);
    form->run(&ones, &v);
    in_two = zeros ^ ones;
    return in_two;
}

int main(void)
{
    unsigned wrong[FORMS] = {0};
    for (unsigned n = 0; n < TIMES; n++) {
        for (unsigned k = 0; k < FORMS; k++) {
            unsigned long v = random_bits() & random_bits() & (n % 3 ? random_bits() : ~0ul), got;
            if (n % 7 == 0)
                v = 0;
            if (n % 5 == 0) // most of the time only what nobody asks for
                v &= ~0x81818181818181f3ul;
            memset(source, 0, 8);
            memset(result, 0, 8);
            MUNINN_SET_VBITS(source, &v, 8);
            forms[k].run(result, source);
            int known = MUNINN_GET_VBITS(result, &got, 8) == 1;
            MUNINN_SET_VBITS(source, zero, 8);
            MUNINN_SET_VBITS(result, zero, 8);
            if (known && (forms[k].bits ? got != 0 : got) != expected(&forms[k], v))
                wrong[k]++;
        }
    }
    for (unsigned k = 0; k < FORMS; k++)
        printf("%u: %u wrong\n", k, wrong[k]);
    return 0;
}
