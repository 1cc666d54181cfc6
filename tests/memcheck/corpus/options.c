// SPDX-License-Identifier: MIT
//
// What options change: which stacks are kept, which accesses are ignored, and the mode in which nothing
// is known of undefined values.
#include "corpus.h"

#include <fcntl.h>
#include <valgrind/memcheck.h>

CASE(keep_alloc) // OPTIONS --keep-stacktraces=alloc
{
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    free(p);
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed alloc=-4
}

CASE(keep_free) // OPTIONS --keep-stacktraces=free
{
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    free(p);
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed free=-2
}

CASE(keep_alloc_then_free) // OPTIONS --keep-stacktraces=alloc-then-free
{
    u8 *p = (u8 *)malloc(10);
    HIDE(p);
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 alloc=-2
    free(p);
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed free=-2
}

CASE(keep_none) // OPTIONS --keep-stacktraces=none
{
    u8 *p = freed_block(10);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed
}

#define BELOW(distance) \
    __asm__ volatile("movq -" #distance "(%%rsp), %%rax\n\tmovq %%rax, corpus_sink(%%rip)" \
                     : : : "rax", "memory")

CASE(ignore_range_below_sp) // OPTIONS --ignore-range-below-sp=4000-3993
{
    BELOW(4000);
    BELOW(4008); // EXPECT memcheck invalid-read size=8 where=stack below=yes
}

CASE(workaround_gcc296) // OPTIONS --workaround-gcc296-bugs=yes
{
    BELOW(1000);
    BELOW(2000); // EXPECT memcheck invalid-read size=8 where=stack below=yes
}

CASE(ignore_ranges) // OPTIONS --ignore-ranges=0x0-0xffffffffffff
{
    u8 *p = block(10);
    READ1(p + 10);
    READ1(p - 1);
}

CASE(partial_loads_not_ok) // OPTIONS --partial-loads-ok=no
{
    u8 *p = zeroed_block(12);
    READ8(p + 8); // EXPECT memcheck invalid-read size=8 block=inside:8 of=12
}

CASE(partial_loads_ok)
{
    u8 *p = zeroed_block(12);
    READ8(p + 8);
    __asm__ volatile("movaps (%0), %%xmm0" : : "r"(p) : "xmm0");
}

// ---------------------------------------------------- --undef-value-errors=no

CASE(light_undefined) // OPTIONS --track-origins=no --undef-value-errors=no
{
    u8 *p = block(100), local[100], *q = local;
    HIDE(q);
    BRANCH(p[5]);
    BRANCH(q[5]);
    BRANCH(memcmp(p, q, 10));
    BRANCH(strncmp((char *)p, (char *)q, 10));
    CHECK(write(open("/dev/null", O_WRONLY), p, 100) == 100);
    for (int i = 0; i < 100; i++)
        q[i] = p[i];
    BRANCH(q[99]);
    p = (u8 *)realloc(p, 1000);
    BRANCH(p[900]);
    __asm__ volatile("lodsb\n\ttestb %%al, %%al\n\tjz 1f\n\tnop\n1:\n\tfldt (%%rbx)\n\tfstp %%st"
                     : "+S"(p) : "b"(p) : "rax", "cc", "memory");
}

CASE(light_invalid) // OPTIONS --track-origins=no --undef-value-errors=no
{
    u8 *p = block(40);
    READ1(p + 40); // EXPECT memcheck invalid-read size=1 block=after:0 of=40
    READ2(p - 2); // EXPECT memcheck invalid-read size=2 block=before:2 of=40
    READ4(p + 39); // EXPECT memcheck invalid-read size=4 block=inside:39 of=40
    READ16(p + 25); // EXPECT memcheck invalid-read size=16 block=inside:25 of=40
    WRITE8(p + 33); // EXPECT memcheck invalid-write size=8 block=inside:33 of=40
    READ8(p + 32);
    free(p);
    HIDE(p);
    READ8(p + 32); // EXPECT memcheck invalid-read size=8 block=inside:32 of=40 state=freed
}

CASE(light_strings) // OPTIONS --track-origins=no --undef-value-errors=no
{
    char *p = (char *)block(4);
    memcpy(p, "abcd", 4);
    BRANCH(strlen(p)); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
    CHECK(write(open("/dev/null", O_WRONLY), p, 5) == 5); // EXPECT memcheck syscall-param param=write(buf) bad=unaddressable
}

static NOINLINE u8 *dangling(void)
{
    volatile u8 frame[4096];
    u8 *p = (u8 *)frame + 2000;
    frame[2000] = 1;
    HIDE(p);
    return p;
}

static NOINLINE int uses_stack(int n)
{
    volatile u8 frame[3000];
    BRANCH(frame[n]);
    return n ? uses_stack(n - 1) : frame[5];
}

CASE(light_stack) // OPTIONS --track-origins=no --undef-value-errors=no
{
    u8 *p = dangling();
    READ4(p); // EXPECT memcheck invalid-read size=4 where=stack below=yes
    BRANCH(uses_stack(10));
    p = dangling();
    WRITE4(p); // EXPECT memcheck invalid-write size=4 where=stack below=yes
}

CASE(light_leak) // OPTIONS --track-origins=no --undef-value-errors=no --leak-check=full
{
    u8 *p = block(77); // EXPECT memcheck leak-definite bytes=77 blocks=1
    p[0] = 1;
    p = NULL;
    HIDE(p);
}

// A thousand places that branch on what p points to, and one more.
#define BRANCH_EVERYWHERE(p) \
    __asm__ volatile(".rept 1001\n\tmovq (%0), %%rax\n\ttestq %%rax, %%rax\n\tjz 1f\n\tnop\n" \
                     "1:\n\t.endr" : : "r"(p) : "rax", "cc", "memory")

static NOINLINE u8 bits_of(const u8 *p)
{
    u8 bits = 0x55;
    (void)VALGRIND_GET_VBITS(p, &bits, 1);
    return bits;
}

CASE(past_the_limit_what_is_loaded_becomes_defined) // NOT-VALGRIND error-limit
{
    u8 *p = block(64);
    READ8(p + 8);
    CHECK(bits_of(p) == 0xff && bits_of(p + 8) == 0xff);
    BRANCH_EVERYWHERE(p); // EXPECT memcheck uninit-branch
    READ8(p + 8);
    __asm__ volatile("addq 16(%0), %%rax" : : "r"(p) : "rax", "cc", "memory");
    CHECK(bits_of(p + 8) == 0 && bits_of(p + 15) == 0); // a move
    CHECK(bits_of(p + 16) == 0); // a step
    CHECK(bits_of(p + 24) == 0xff); // nobody loaded it
    free(p);
}

// An allocator with names of its own, hidden or not.
static u8 own_arena[4096];
static u64 own_used;
NOINLINE void *own_get(size_t size)
{
    u8 *p = own_arena + own_used;
    own_used += (size + 15) & ~15ull;
    HIDE(p);
    return p;
}
NOINLINE void own_give(void *p)
{
    HIDE(p);
}
static NOINLINE void *own_calloc(size_t count, size_t size)
{
    return memset(own_get(count * size), 0, count * size);
}
static NOINLINE void own_free(void *p)
{
    HIDE(p);
}

CASE(named_allocator) // OPTIONS --alloc-fns=own_get=malloc,own_give=free
{
    // ONLY gcc-O0 clang-O0
    // NOT-VALGRIND named-allocators
    u8 *p = (u8 *)own_get(10);
    HIDE(p);
    READ1(p + 10); // EXPECT memcheck invalid-read size=1 block=after:0 of=10 state=live
    BRANCH(p[3]);  // EXPECT memcheck uninit-branch
    own_give(p);
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=10 state=freed
}

CASE(named_by_prefix) // OPTIONS --alloc-fns=own_*
{
    // ONLY gcc-O0 clang-O0
    // NOT-VALGRIND named-allocators
    u8 *p = (u8 *)own_calloc(3, 5);
    HIDE(p);
    READ1(p + 15); // EXPECT memcheck invalid-read size=1 block=after:0 of=15 state=live
    BRANCH(p[3]);
    own_free(p);
    HIDE(p);
    READ1(p); // EXPECT memcheck invalid-read size=1 block=inside:0 of=15 state=freed
}

CASE(not_named)
{
    u8 *p = (u8 *)own_get(10);
    HIDE(p);
    READ1(p + 10);
    BRANCH(p[3]);
    own_give(p);
    READ1(p);
}
