// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=memcheck -q --stress=often
// MUNINN: --tool=memcheck -q
//
// Structures are copied as compilers do it, and as no compiler would: by turns and all at once,
// with other stores between, from and to places that overlap. V bits go where their bytes go: the
// same code copies a picture of them, which says what they must be then.
#include <stdio.h>
#include <string.h>

#include "../../include/muninn/client.h"

enum { BYTES = 320, TIMES = 400 };

// One area: sides of a copy may be anywhere in it.
static unsigned char elsewhere[BYTES] __attribute__((aligned(64)));
static unsigned char v_before[BYTES] __attribute__((aligned(64)));
static unsigned char v_after[BYTES], zero[BYTES];

typedef void Copy(unsigned char *to, const unsigned char *from);

#define COPY(name, ...)                                                                      \
    static __attribute__((noinline)) void name(unsigned char *to, const unsigned char *from) \
    {                                                                                        \
        __asm__ volatile(__VA_ARGS__                                                         \
                         : "+D"(to), "+S"(from)                                              \
                         :                                                                   \
                         : "rax", "rcx", "rdx", "xmm0", "xmm1", "xmm2", "cc", "memory");     \
    }

COPY(by_turns, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n"
               "movdqu 16(%%rsi), %%xmm1\n movups %%xmm1, 16(%%rdi)\n"
               "mov 32(%%rsi), %%rax\n mov %%rax, 32(%%rdi)\n"
               "mov 40(%%rsi), %%eax\n mov %%eax, 40(%%rdi)\n"
               "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(all_at_once, "movdqu (%%rsi), %%xmm0\n movdqu 16(%%rsi), %%xmm1\n mov 32(%%rsi), %%rax\n"
                  "movups %%xmm0, (%%rdi)\n movups %%xmm1, 16(%%rdi)\n mov %%rax, 32(%%rdi)\n"
                  "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(backwards, "mov 24(%%rsi), %%rax\n mov %%rax, 24(%%rdi)\n"
                "movdqu 8(%%rsi), %%xmm2\n mov (%%rsi), %%rcx\n movups %%xmm2, 8(%%rdi)\n"
                "mov %%rcx, (%%rdi)\n"
                "xor %%eax, %%eax\n xor %%ecx, %%ecx\n pxor %%xmm2, %%xmm2")
COPY(with_another_store, "movdqu (%%rsi), %%xmm0\n movl $7, 20(%%rdi)\n"
                         "movdqu 32(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
                         "movl $9, 16(%%rsi)\n movups %%xmm1, 32(%%rdi)\n"
                         "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_a_store_into_it, "movdqu (%%rsi), %%xmm0\n movl $7, 4(%%rdi)\n"
                           "movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
                           "movl $9, 20(%%rsi)\n movups %%xmm1, 16(%%rdi)\n"
                           "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_a_store_beyond, "movdqu (%%rsi), %%xmm0\n movl $7, 56(%%rdi)\n"
                          "movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
                          "movups %%xmm1, 16(%%rdi)\n"
                          "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_a_store_before, "movl $7, 4(%%rsi)\n movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n"
                          "movl $5, 8(%%rdi)\n pxor %%xmm0, %%xmm0")
COPY(twice, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n movups %%xmm0, 16(%%rdi)\n"
            "pxor %%xmm0, %%xmm0")
COPY(kept, "mov (%%rsi), %%rax\n movdqu 8(%%rsi), %%xmm0\n mov %%rax, (%%rdi)\n"
           "movups %%xmm0, 8(%%rdi)\n jmp 1f\n 1: mov %%rax, 24(%%rdi)\n"
           "pxor %%xmm0, %%xmm0\n xor %%eax, %%eax")
COPY(one_register, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n mov 8(%%rsi), %%rax\n"
                   "mov %%rax, 8(%%rdi)\n mov 16(%%rsi), %%eax\n mov %%eax, 16(%%rdi)\n"
                   "xor %%eax, %%eax")
COPY(in_one_structure, "mov (%%rdi), %%rax\n movdqu 8(%%rdi), %%xmm0\n mov %%rax, 40(%%rdi)\n"
                       "movups %%xmm0, 48(%%rdi)\n xor %%eax, %%eax\n pxor %%xmm0, %%xmm0")
COPY(into_itself, "mov (%%rdi), %%rax\n movdqu 8(%%rdi), %%xmm0\n mov %%rax, 4(%%rdi)\n"
                  "movups %%xmm0, 12(%%rdi)\n xor %%eax, %%eax\n pxor %%xmm0, %%xmm0")
COPY(by_a_changed_register, "mov (%%rsi), %%rax\n add $8, %%rdi\n mov %%rax, (%%rdi)\n"
                            "mov 8(%%rsi), %%rax\n add $8, %%rsi\n mov %%rax, 8(%%rdi)\n"
                            "mov 8(%%rsi), %%rax\n mov %%rax, 16(%%rdi)\n xor %%eax, %%eax")
COPY(by_a_loaded_register, "mov (%%rsi), %%rax\n mov %%rdi, %%rcx\n mov 8(%%rsi), %%rdx\n"
                           "mov %%rax, (%%rcx)\n mov %%rdx, 8(%%rcx)\n"
                           "xor %%eax, %%eax\n xor %%edx, %%edx")
// The loads begin where rdx is as good as any register.
#define STRANGER(distance, of) "lea " #distance "(%%" #of "), %%rdx\n jmp 1f\n 1:\n"
COPY(with_a_stranger, STRANGER(24, rdi) "movdqu (%%rsi), %%xmm0\n movdqu 16(%%rsi), %%xmm1\n"
     "movl $7, (%%rdx)\n movups %%xmm0, (%%rdi)\n movups %%xmm1, 16(%%rdi)\n"
     "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_a_stranger_apart, STRANGER(40, rdi) "movdqu (%%rsi), %%xmm0\n"
     "movdqu 16(%%rsi), %%xmm1\n movl $7, (%%rdx)\n movups %%xmm0, (%%rdi)\n"
     "movups %%xmm1, 16(%%rdi)\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_what_a_stranger_stores, STRANGER(20, rsi) "mov 48(%%rsi), %%ecx\n"
     "movdqu (%%rsi), %%xmm0\n mov 56(%%rsi), %%eax\n mov %%ecx, (%%rdx)\n"
     "mov %%eax, 4(%%rdx)\n movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
     "movups %%xmm1, 16(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n"
     "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_what_a_stranger_loads, STRANGER(8, rdi) "movdqu (%%rsi), %%xmm0\n mov (%%rdx), %%ecx\n"
     "mov 16(%%rsi), %%rax\n movups %%xmm0, (%%rdi)\n mov %%ecx, 32(%%rdi)\n"
     "mov %%rax, 16(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n pxor %%xmm0, %%xmm0")
COPY(with_two_destinations, STRANGER(48, rdi) "mov (%%rsi), %%rax\n mov 8(%%rsi), %%rcx\n"
     "movdqu 16(%%rsi), %%xmm0\n mov %%rax, (%%rdi)\n mov %%rcx, (%%rdx)\n"
     "movups %%xmm0, 16(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n pxor %%xmm0, %%xmm0")
COPY(with_what_is_stored_before, "movdqu 32(%%rsi), %%xmm1\n jmp 1f\n 1: movdqu (%%rsi), %%xmm0\n"
     "movups %%xmm1, 32(%%rdi)\n movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
     "movups %%xmm1, 16(%%rdi)\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(with_what_is_moved_before, "movdqu 32(%%rsi), %%xmm1\n jmp 1f\n 1: movdqu (%%rsi), %%xmm0\n"
     "movaps %%xmm1, %%xmm2\n movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, (%%rdi)\n"
     "movups %%xmm1, 16(%%rdi)\n jmp 1f\n 1: movups %%xmm2, 32(%%rdi)\n"
     "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2")
COPY(with_flags, "xor %%eax, %%eax\n mov $9, %%ecx\n cmp $8, %%rcx\n movdqu (%%rsi), %%xmm0\n"
     "mov 16(%%rsi), %%rdx\n movups %%xmm0, (%%rdi)\n mov %%rdx, 16(%%rdi)\n seta %%al\n"
     "mov %%al, 40(%%rdi)\n xor %%eax, %%eax\n xor %%edx, %%edx\n pxor %%xmm0, %%xmm0")
COPY(with_flags_of_what_it_stores, "xor %%eax, %%eax\n test %%rsi, %%rsi\n movl $7, 8(%%rsi)\n movdqu (%%rsi), %%xmm0\n"
     "movups %%xmm0, (%%rdi)\n setc %%al\n mov %%al, 40(%%rdi)\n pxor %%xmm0, %%xmm0")
COPY(by_pieces_that_overlap, "movdqu (%%rsi), %%xmm0\n movdqu 12(%%rsi), %%xmm1\n"
     "movups %%xmm0, (%%rdi)\n movups %%xmm1, 12(%%rdi)\n pxor %%xmm0, %%xmm0\n"
     "pxor %%xmm1, %%xmm1")
COPY(by_pieces_that_overlap_else, "movdqu (%%rsi), %%xmm0\n movdqu 12(%%rsi), %%xmm1\n"
     "movups %%xmm0, (%%rdi)\n movups %%xmm1, 8(%%rdi)\n pxor %%xmm0, %%xmm0\n"
     "pxor %%xmm1, %%xmm1")
COPY(through_its_own_base, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n mov 8(%%rsi), %%rsi\n"
     "mov %%rsi, 8(%%rdi)\n xor %%eax, %%eax\n xor %%esi, %%esi")
COPY(by_another_name, "movdqu (%%rsi), %%xmm0\n lea 16(%%rdi), %%rcx\n mov %%rsi, %%rdx\n"
     "mov 16(%%rdx), %%rax\n movups %%xmm0, -16(%%rcx)\n mov %%rax, (%%rcx)\n"
     "mov %%rcx, %%rdx\n movdqu 24(%%rsi), %%xmm1\n movups %%xmm1, 8(%%rdx)\n"
     "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1")
COPY(by_way_of_the_stack, "lea -192(%%rsp), %%rsp\n jmp 1f\n 1: movdqu (%%rsi), %%xmm0\n"
     "sub $8, %%rsp\n movdqu 16(%%rsi), %%xmm1\n movups %%xmm0, 8(%%rsp)\n"
     "movups %%xmm1, 24(%%rsp)\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n jmp 1f\n"
     "1: movdqu 8(%%rsp), %%xmm2\n movdqu 24(%%rsp), %%xmm1\n movups %%xmm2, (%%rdi)\n"
     "movups %%xmm1, 16(%%rdi)\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n"
     "lea 200(%%rsp), %%rsp")
COPY(kept_beyond_a_loop, "movdqu (%%rsi), %%xmm0\n mov 16(%%rsi), %%rax\n movups %%xmm0, (%%rdi)\n"
     "mov %%rax, 16(%%rdi)\n mov $3, %%ecx\n 1: dec %%ecx\n je 2f\n test $1, %%cl\n je 1b\n"
     "jmp 1b\n 2: movups %%xmm0, 24(%%rdi)\n pxor %%xmm0, %%xmm0\n xor %%eax, %%eax")
COPY(read_within_a_loop, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n mov $3, %%ecx\n"
     "jmp 2f\n 1: movups %%xmm0, 16(%%rdi)\n pxor %%xmm0, %%xmm0\n"
     "2: dec %%ecx\n jne 1b\n movups %%xmm0, 32(%%rdi)")
COPY(by_string_instructions, "movsq\n movsl\n movsb")
// What is left of a register behind a copy, if not all of it is overwritten.
COPY(with_one_byte_written, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n mov $5, %%al\n"
     "mov %%rax, 16(%%rdi)\n movdqu 16(%%rsi), %%xmm0\n movups %%xmm0, 32(%%rdi)\n"
     "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0")
COPY(with_one_byte_written_and_moved, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n mov $3, %%ah\n"
     "mov %%rax, %%rcx\n movdqu 16(%%rsi), %%xmm0\n movups %%xmm0, 32(%%rdi)\n"
     "mov %%rcx, 16(%%rdi)\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n pxor %%xmm0, %%xmm0")
COPY(with_half_of_it_written, "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n"
     "movlps 16(%%rsi), %%xmm0\n movlps %%xmm0, 16(%%rdi)\n movhps %%xmm0, 24(%%rdi)\n"
     "movdqu 16(%%rsi), %%xmm1\n movups %%xmm1, 32(%%rdi)\n pxor %%xmm0, %%xmm0\n"
     "pxor %%xmm1, %%xmm1")
COPY(with_a_part_set_by_flags, "mov (%%rsi), %%rax\n mov %%rax, (%%rdi)\n test %%rsi, %%rsi\n"
     "setne %%al\n mov %%rax, 16(%%rdi)\n movdqu 16(%%rsi), %%xmm0\n"
     "movups %%xmm0, 32(%%rdi)\n xor %%eax, %%eax\n pxor %%xmm0, %%xmm0")
// A block in which something was undefined, and is not any more.
COPY(behind_a_store, "movdqu 32(%%rsi), %%xmm1\n test %%rsi, %%rsi\n je 1f\n"
     "movups %%xmm1, 64(%%rdi)\n movdqu (%%rsi), %%xmm0\n movzwl 48(%%rsi), %%ecx\n"
     "movups %%xmm0, (%%rdi)\n mov %%cx, 56(%%rdi)\n 1: pxor %%xmm0, %%xmm0\n"
     "pxor %%xmm1, %%xmm1\n xor %%ecx, %%ecx")
#define FOUR(n) "movl $7, " #n "(%%rdi)\n movl $7, " #n "+4(%%rdi)\n movl $7, " #n "+8(%%rdi)\n" \
                "movl $7, " #n "+12(%%rdi)\n"
COPY(with_many_others, "movdqu (%%rsi), %%xmm0\n mov 32(%%rsi), %%rax\n" FOUR(64) FOUR(64) FOUR(64)
     FOUR(64) "movups %%xmm0, (%%rdi)\n bswap %%rax\n bswap %%rax\n mov %%rax, 40(%%rdi)\n"
     "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0")
// So much that the block has no room for all of it, with the copy far behind.
#define AT_THE_END(name, load)                                                              \
    COPY(name, "test %%rsi, %%rsi\n je 1f\n 1:\n .rept 15\n" load "\n .endr\n"             \
         "movdqu (%%rsi), %%xmm0\n movzwl 48(%%rsi), %%ecx\n"                               \
         ".rept 14\n movq %%rcx, %%xmm2\n movq %%xmm2, %%rcx\n .endr\n"                    \
         "movups %%xmm0, (%%rdi)\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n"             \
         "pxor %%xmm2, %%xmm2\n xor %%eax, %%eax\n xor %%ecx, %%ecx")
AT_THE_END(at_the_end, "movzwl 48(%%rsi), %%eax")
AT_THE_END(at_the_end_of_vectors, "movdqu 48(%%rsi), %%xmm1")

static Copy *const copies[] = {
    by_turns, all_at_once, backwards, with_another_store, with_a_store_into_it,
    with_a_store_beyond, with_a_store_before, twice, kept, one_register, in_one_structure, into_itself,
    by_a_changed_register, by_a_loaded_register, with_a_stranger, with_a_stranger_apart,
    with_what_a_stranger_stores, with_what_a_stranger_loads, with_two_destinations,
    with_what_is_stored_before, with_what_is_moved_before, with_flags,
    with_flags_of_what_it_stores, by_pieces_that_overlap, by_pieces_that_overlap_else,
    through_its_own_base, by_another_name, by_way_of_the_stack, kept_beyond_a_loop,
    read_within_a_loop, by_string_instructions, with_one_byte_written, with_one_byte_written_and_moved,
    with_half_of_it_written, with_a_part_set_by_flags, behind_a_store, with_many_others,
    at_the_end, at_the_end_of_vectors,
};

static unsigned random_below(unsigned n)
{
    static unsigned long seed = 12345;
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(seed >> 33) % n;
}

// Zeros stand for what is defined; constants that the code stores are, so the picture gets zeros
// where they went.
static int is_as_expected(Copy *copy, unsigned to, unsigned from)
{
    unsigned char constants[BYTES];
    memset(constants, 0, sizeof(constants));
    copy(constants + to, constants + from);
    copy(v_before + to, v_before + from);
    for (unsigned i = 0; i < BYTES; i++)
        v_before[i] = constants[i] ? 0 : v_before[i];
    return memcmp(v_before, v_after, BYTES) == 0;
}

int main(void)
{
    unsigned char on_stack[BYTES] __attribute__((aligned(64)));
    unsigned wrong[sizeof(copies) / sizeof(*copies)] = {0};
    for (unsigned n = 0; n < TIMES; n++) {
        unsigned char *area = n & 1 ? on_stack : elsewhere;
        for (unsigned k = 0; k < sizeof(copies) / sizeof(*copies); k++) {
            unsigned to = random_below(2) ? 128 + random_below(64) : random_below(160);
            unsigned from = random_below(2) ? random_below(64) : random_below(160);
            unsigned density = random_below(3);
            if (random_below(2)) {
                to &= ~7u;
                from &= ~7u;
            }
            for (unsigned i = 0; i < BYTES; i++)
                v_before[i] = density && random_below(4) < density
                                  ? (unsigned char)random_below(256) : 0;
            memset(area, 0, BYTES);
            MUNINN_SET_VBITS(area, v_before, BYTES);
            copies[k](area + to, area + from);
            memset(v_after, 0, sizeof(v_after));
            int known = MUNINN_GET_VBITS(area, v_after, BYTES) == 1;
            MUNINN_SET_VBITS(area, zero, BYTES);
            if (!is_as_expected(copies[k], to, from) && known)
                wrong[k]++;
        }
    }
    for (unsigned k = 0; k < sizeof(copies) / sizeof(*copies); k++)
        printf("%u: %u wrong\n", k, wrong[k]);
    return 0;
}
