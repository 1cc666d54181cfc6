// SPDX-License-Identifier: MIT
//
// Undefined bits that do no harm: programs that copy, mask, shift, merge and overwrite them and ask
// only about the rest. Each idiom is something compilers emit. Some have a twin that does ask.
#include "corpus.h"

#define UNDEFINED(type) (*(volatile type *)block(sizeof(type)))

struct Bits {
    unsigned a : 3, b : 5, c : 11, d : 1, e : 12;
};

CASE(bitfields)
{
    struct Bits *s = (struct Bits *)block(sizeof *s);
    s->b = 9;
    s->d = 1;
    HIDE(s);
    BRANCH(s->b == 9);
    BRANCH(s->d);
    s->b += 3;
    HIDE(s);
    CHECK(s->b == 12 && s->d == 1);
    free(s);
}

CASE(bitfield_next_to_it)
{
    struct Bits *s = (struct Bits *)block(sizeof *s);
    s->b = 9;
    HIDE(s);
    BRANCH(s->b);
    unsigned c = s->c;
    BRANCH(c); // EXPECT memcheck uninit-branch origin=heap:-5
    free(s);
}

struct Padded {
    char a;
    int b;
    char c;
    double d;
    char e;
};

CASE(padding_assigned)
{
    struct Padded x, y, *p = (struct Padded *)block(sizeof *p);
    struct Padded *q = &x;
    HIDE(q);
    q->a = 1, q->b = 2, q->c = 3, q->d = 4, q->e = 5;
    y = *q;
    *p = y;
    HIDE(p);
    CHECK(p->a == 1 && p->b == 2 && p->c == 3 && p->d == 4 && p->e == 5);
    free(p);
}

CASE(padding_copied)
{
    struct Padded *p = (struct Padded *)block(sizeof *p * 3);
    struct Padded *q = (struct Padded *)block(sizeof *q * 3);
    for (int i = 0; i < 3; i++)
        p[i].a = p[i].b = p[i].c = p[i].d = p[i].e = i;
    memcpy(q, p, sizeof *p * 3);
    HIDE(q);
    for (int i = 0; i < 3; i++)
        CHECK(q[i].a == i && q[i].b == i && q[i].c == i && q[i].d == i && q[i].e == i);
    free(p);
    free(q);
}

CASE(padding_compared)
{
    struct Padded *p = (struct Padded *)block(sizeof *p);
    p->a = p->b = p->c = p->d = p->e = 1;
    HIDE(p);
    volatile u8 *raw = (u8 *)p;
    BRANCH(raw[0]);
    BRANCH(raw[1]); // EXPECT memcheck uninit-branch origin=heap:-5
    free(p);
}

static NOINLINE struct Padded by_value(struct Padded x)
{
    x.b++;
    return x;
}

CASE(struct_by_value)
{
    struct Padded x;
    x.a = x.b = x.c = x.d = x.e = 1;
    struct Padded y = by_value(by_value(x));
    CHECK(y.b == 3 && y.e == 1);
}

union Any {
    u8 bytes[16];
    u32 word;
    double number;
    void *pointer;
};

CASE(unions)
{
    union Any *u = (union Any *)block(sizeof *u), v;
    u->word = 7;
    HIDE(u);
    v = *u;
    union Any *w = &v;
    HIDE(w);
    CHECK(w->word == 7);
    CHECK(w->bytes[0] == 7);
    free(u);
}

CASE(union_wider_member)
{
    union Any *u = (union Any *)block(sizeof *u);
    u->word = 0;
    HIDE(u);
    BRANCH((u64)u->pointer); // EXPECT memcheck uninit-branch origin=heap:-3
    free(u);
}

CASE(xor_with_itself)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("xorq %0, %0\n\ttestq %0, %0\n\tjz 1f\n\tnop\n1:" : "+r"(v) : : "cc");
    CHECK(v == 0);
}

CASE(xor_itself_32)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("xorl %k0, %k0" : "+r"(v) : : "cc");
    CHECK(v == 0);
}

CASE(sub_itself)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("subq %0, %0" : "+r"(v) : : "cc");
    CHECK(v == 0);
}

CASE(pxor_itself)
{
    u64 *p = (u64 *)block(16);
    u64 v;
    __asm__ volatile("movups (%1), %%xmm1\n\tpxor %%xmm1, %%xmm1\n\tmovq %%xmm1, %0"
                     : "=r"(v) : "r"(p) : "xmm1");
    CHECK(v == 0);
}

CASE(pcmpeq_itself)
{
    u64 *p = (u64 *)block(16);
    u64 v;
    __asm__ volatile("movups (%1), %%xmm1\n\tpcmpeqd %%xmm1, %%xmm1\n\tmovq %%xmm1, %0"
                     : "=r"(v) : "r"(p) : "xmm1");
    CHECK(v == ~0ull);
}

CASE(sbb_itself)
{
    u64 v = UNDEFINED(u64), a = 1, b = 2;
    __asm__ volatile("cmpq %2, %1\n\tsbbq %0, %0" : "+r"(v) : "r"(a), "r"(b) : "cc");
    CHECK(v == ~0ull);
}

CASE(sbb_itself_carry_undefined)
{
    u64 *p = (u64 *)block(8);
    u64 v = 0, a = *(volatile u64 *)p, b = 2;
    __asm__ volatile("cmpq %2, %1\n\tsbbq %0, %0" : "+r"(v) : "r"(a), "r"(b) : "cc");
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(or_minus_one)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("orq $-1, %0" : "+r"(v) : : "cc");
    CHECK(v == ~0ull);
}

CASE(and_zero)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("andq $0, %0" : "+r"(v) : : "cc");
    CHECK(v == 0);
}

CASE(mask_selects_defined)
{
    u8 *p = block(4);
    p[1] = 0x42;
    u32 v = *(volatile u32 *)p;
    HIDE(v);
    CHECK((v & 0xff00) == 0x4200);
}

CASE(mask_selects_undefined)
{
    u8 *p = block(4);
    p[1] = 0;
    u32 v = *(volatile u32 *)p & 0x1ff00;
    HIDE(v);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(shift_selects_defined)
{
    u8 *p = block(4);
    p[2] = 1, p[3] = 0x42;
    u32 v = *(volatile u32 *)p;
    HIDE(v);
    v >>= 16;
    HIDE(v);
    CHECK(v == 0x4201);
}

CASE(shift_drops_undefined)
{
    u8 *p = block(4);
    p[0] = 1;
    u32 v = *(volatile u32 *)p;
    HIDE(v);
    v <<= 24;
    HIDE(v);
    CHECK(v == 0x1000000);
}

CASE(rotate_keeps_its_place)
{
    u8 *p = block(4);
    p[0] = 0x11;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("roll $8, %0" : "+r"(v) : : "cc");
    v &= 0xff00;
    HIDE(v);
    CHECK(v == 0x1100);
}

CASE(arithmetic_shift_of_undefined_sign)
{
    u8 *p = block(4);
    p[0] = p[1] = p[2] = 1;
    int v = *(volatile int *)p;
    __asm__ volatile("sarl $8, %0" : "+r"(v) : : "cc");
    BRANCH(v & 0xffff);
    BRANCH(v & 0x10000); // EXPECT memcheck uninit-branch origin=heap:-5
}

CASE(test_of_defined_bits)
{
    u8 *p = block(4);
    p[0] = 4;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("testl $4, %0\n\tjz 1f\n\tnop\n1:" : : "r"(v) : "cc");
    __asm__ volatile("testb %b0, %b0\n\tjs 1f\n\tnop\n1:" : : "q"(v) : "cc");
    __asm__ volatile("btl $2, %0\n\tjc 1f\n\tnop\n1:" : : "r"(v) : "cc");
}

CASE(bit_test_of_undefined_bit)
{
    u8 *p = block(4);
    p[0] = 4;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("btl $12, %0\n\tjc 1f\n\tnop\n1:" : : "r"(v) : "cc");
    // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(add_low_bits)
{
    u8 *p = block(4);
    p[0] = 4, p[1] = 1;
    u32 v = *(volatile u32 *)p;
    HIDE(v);
    v += 0x10001;
    HIDE(v);
    CHECK((v & 0xffff) == 0x0105);
}

CASE(add_high_bits_after_undefined_low)
{
    u8 *p = block(4);
    p[1] = p[2] = p[3] = 0;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("addl $0x100, %0" : "+r"(v) : : "cc");
    BRANCH(v >> 8);
}

CASE(multiply_low_bits)
{
    u8 *p = block(4);
    p[0] = 4;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("imull $3, %0, %0" : "+r"(v) : : "cc");
    BRANCH(v & 0xff);
}

CASE(byte_of_a_word)
{
    u8 *p = block(8);
    p[1] = 5;
    u64 v = *(volatile u64 *)p;
    u64 r = 0;
    __asm__ volatile("movb %h1, %b0" : "+Q"(r) : "Q"(v));
    CHECK(r == 5);
}

CASE(byte_swapped)
{
    u8 *p = block(8);
    p[7] = 5;
    u64 v = *(volatile u64 *)p;
    __asm__ volatile("bswapq %0" : "+r"(v));
    CHECK((v & 0xff) == 5);
}

CASE(zero_extension_defines)
{
    u8 *p = block(8);
    p[0] = 0;
    u64 v = UNDEFINED(u64);
    __asm__ volatile("movzbl (%1), %k0" : "+r"(v) : "r"(p) : "memory");
    CHECK(v == 0);
}

CASE(write_to_32_bits_clears_the_rest)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("movl $3, %k0" : "+r"(v));
    CHECK(v == 3);
}

CASE(write_to_8_bits_keeps_the_rest)
{
    u64 *p = (u64 *)block(8);
    u64 v = *(volatile u64 *)p;
    __asm__ volatile("movb $0, %b0" : "+q"(v));
    BRANCH(v & 0xff);
    BRANCH(v); // EXPECT memcheck uninit-branch
}

CASE(compare_decided_by_defined_bits)
{
    u8 *p = block(4);
    p[3] = 1;
    u32 v = *(volatile u32 *)p, limit = 0x00ffffff;
    __asm__ volatile("cmpl %1, %0\n\tja 1f\n\tnop\n1:" : : "r"(v), "r"(limit) : "cc");
    // MAYBE-VALGRIND memcheck uninit-branch origin=heap:-3 why=flags
}

CASE(equality_decided_by_defined_bits)
{
    u8 *p = block(4);
    p[3] = 1;
    u32 v = *(volatile u32 *)p, other = 0x02000000;
    __asm__ volatile("cmpl %1, %0\n\tje 1f\n\tnop\n1:" : : "r"(v), "r"(other) : "cc");
}

CASE(sign_of_defined_top)
{
    u8 *p = block(4);
    p[3] = 0x80;
    u32 v = *(volatile u32 *)p;
    __asm__ volatile("testl %0, %0\n\tjs 1f\n\tnop\n1:" : : "r"(v) : "cc");
}

CASE(lea_keeps_bits)
{
    u8 *p = block(8);
    p[0] = 1;
    u64 v = *(volatile u64 *)p, r;
    __asm__ volatile("leaq 3(%1,%1,1), %0" : "=r"(r) : "r"(v));
    CHECK((r & 0xff) == 5);
}

CASE(push_and_pop)
{
    u64 v = UNDEFINED(u64), r = 0;
    __asm__ volatile("leaq -256(%%rsp), %%rsp\n\tpushq %1\n\tpopq %0\n\tleaq 256(%%rsp), %%rsp"
                     : "+r"(r) : "r"(v) : "memory");
    __asm__ volatile("xorq %0, %0" : "+r"(r) : : "cc");
    BRANCH(r);
}

CASE(exchange)
{
    u64 v = UNDEFINED(u64), r = 7;
    __asm__ volatile("xchgq %0, %1" : "+r"(v), "+r"(r));
    CHECK(v == 7);
}

CASE(exchanged_with_memory)
{
    u64 *p = (u64 *)block(8);
    u64 r = 7;
    __asm__ volatile("xchgq %0, (%1)" : "+r"(r) : "r"(p) : "memory");
    CHECK(*(volatile u64 *)p == 7);
    BRANCH(r); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(popcount_of_defined_part)
{
    // ONLY gcc-O0 clang-O2
    u8 *p = block(8);
    p[0] = 0x0f;
    u64 v = *(volatile u64 *)p & 0xff, r;
    HIDE(v);
    __asm__ volatile("popcntq %1, %0" : "=r"(r) : "r"(v) : "cc");
    CHECK(r == 4);
}

CASE(count_zeros_below_undefined)
{
    u8 *p = block(8);
    p[0] = 0x08;
    u64 v = *(volatile u64 *)p, r;
    __asm__ volatile("tzcntq %1, %0" : "=r"(r) : "r"(v) : "cc");
    CHECK(r == 3);
}

CASE(bit_scan_below_undefined)
{
    u8 *p = block(8);
    p[0] = 0x08;
    u64 v = *(volatile u64 *)p, r = 0;
    __asm__ volatile("bsfq %1, %0" : "+r"(r) : "r"(v) : "cc");
    CHECK(r == 3);
}

CASE(flags_made_anew)
{
    u64 v = UNDEFINED(u64), one = 1;
    __asm__ volatile("addq %0, %0\n\ttestq %1, %1\n\tjz 1f\n\tnop\n1:" : "+r"(v) : "r"(one) : "cc");
}

CASE(inc_keeps_carry)
{
    u64 v = UNDEFINED(u64);
    __asm__ volatile("stc\n\tincq %0\n\tjnc 1f\n\tnop\n1:" : "+r"(v) : : "cc");
    // EXPECT-VALGRIND memcheck uninit-branch origin=heap:-1 why=flags
}

CASE(add_carry_chain)
{
    u64 *p = (u64 *)block(16), a[2] = {~0ull, 1};
    p[0] = 1, p[1] = 5;
    u64 lo = p[0], hi = p[1];
    __asm__ volatile("addq %2, %0\n\tadcq %3, %1" : "+&r"(lo), "+&r"(hi) : "r"(a[0]), "r"(a[1]) : "cc");
    CHECK(lo == 0 && hi == 7);
}

CASE(carry_from_undefined)
{
    u64 *p = (u64 *)block(8);
    u64 lo = *(volatile u64 *)p, hi = 1;
    __asm__ volatile("addq $5, %0\n\tadcq $0, %1" : "+r"(lo), "+r"(hi) : : "cc");
    BRANCH(hi); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(partly_initialised_array)
{
    int *a = (int *)block(100 * sizeof(int));
    for (int i = 0; i < 50; i++)
        a[i] = i;
    HIDE(a);
    int sum = 0;
    for (int i = 0; i < 50; i++)
        sum += a[i];
    CHECK(sum == 49 * 25);
    free(a);
}

CASE(hash_of_defined)
{
    u8 *p = block(1000);
    for (int i = 0; i < 1000; i++)
        p[i] = i * 7;
    HIDE(p);
    u32 h = 2166136261u;
    for (int i = 0; i < 1000; i++)
        h = (h ^ p[i]) * 16777619u;
    BRANCH(h & 1);
    free(p);
}

CASE(checksum_of_undefined)
{
    u8 *p = block(1000);
    for (int i = 0; i < 999; i++)
        p[i] = i * 7;
    HIDE(p);
    u32 h = 2166136261u;
    for (int i = 0; i < 1000; i++)
        h = (h ^ p[i]) * 16777619u;
    BRANCH(h); // EXPECT memcheck uninit-branch origin=heap:-7
    free(p);
}

CASE(variadic_undefined_is_only_passed)
{
    char text[64];
    volatile int a = 3;
    CHECK(snprintf(text, sizeof text, "%d %s %.1f %c", a, "x", 2.5, 'c') == 9);
    CHECK(strcmp(text, "3 x 2.5 c") == 0);
}

CASE(bool_returned_in_al)
{
    bool *p = (bool *)block(1);
    *p = true;
    HIDE(p);
    CHECK(*p);
    free(p);
}

CASE(spilled_through_memory)
{
    u8 *p = block(8);
    p[0] = 9;
    volatile u64 slot = *(volatile u64 *)p;
    u64 v = slot;
    HIDE(v);
    CHECK((u8)v == 9);
}

CASE(one_defined_bit_decides_against_zero)
{
    u8 *p = block(4);
    p[1] = 0x42;
    BRANCH(*(volatile u32 *)p);
}
