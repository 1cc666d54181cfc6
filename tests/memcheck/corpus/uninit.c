// SPDX-License-Identifier: MIT
//
// Undefined values where they matter: conditions, addresses, jump targets; from the heap, the stack
// and client requests; through copies, arithmetic and calls; with their origins.
#include "corpus.h"

#include <valgrind/memcheck.h>

CASE(heap_condition)
{
    volatile int *p = (int *)block(16);
    if (p[2] > 0) // EXPECT memcheck uninit-branch origin=heap:-1
        puts("");
    free((void *)p);
}

CASE(heap_condition_defined)
{
    volatile int *p = (int *)block(16);
    p[2] = 0;
    if (p[2] > 0)
        puts("");
    free((void *)p);
}

CASE(stack_condition)
{
    volatile int local[4];
    if (local[1] > 5) // EXPECT memcheck uninit-branch origin=stack
        puts("");
}

CASE(stack_condition_defined)
{
    volatile int local[4] = {0};
    if (local[1] > 5)
        puts("");
}

CASE(client_condition)
{
    static int word;
    VALGRIND_MAKE_MEM_UNDEFINED(&word, sizeof word);
    BRANCH(*(volatile int *)&word); // EXPECT memcheck uninit-branch origin=client:-1
}

CASE(client_condition_defined)
{
    int *p = (int *)block(4);
    VALGRIND_MAKE_MEM_DEFINED(p, sizeof *p);
    BRANCH(*(volatile int *)p);
    free(p);
}

CASE(branch_1)
{
    u8 *p = block(1);
    BRANCH(*p); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(branch_2)
{
    u16 *p = (u16 *)block(2);
    BRANCH(*p); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(branch_4)
{
    u32 *p = (u32 *)block(4);
    BRANCH(*p); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(branch_8)
{
    u64 *p = (u64 *)block(8);
    BRANCH(*p); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(branch_misaligned)
{
    u8 *p = zeroed_block(16);
    u8 *q = block(16);
    memcpy(p, q, 3);
    u32 v;
    __asm__ volatile("movl 1(%1), %0" : "=r"(v) : "r"(p) : "memory");
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap
    __asm__ volatile("movl 3(%1), %0" : "=r"(v) : "r"(p) : "memory");
    BRANCH(v);
}

CASE(one_bit)
{
    u8 *p = block(1);
    u8 v = *(volatile u8 *)p & 0x10;
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-2
}

// What is freed again and again comes again: what was stored there belongs to its last owner.
CASE(origin_of_memory_used_before)
{
    volatile u64 *from = (u64 *)block(8);
    for (int i = 0; i < 9000; i++) {
        volatile u64 *to = (u64 *)block(64);
        to[3] = from[0];
        free((void *)to);
    }
    volatile u64 *p = (u64 *)block(64);
    BRANCH(p[3]); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(array_index)
{
    static int table[256];
    u8 *p = block(1);
    u64 i = *(volatile u8 *)p;
    __asm__ volatile("movl (%0,%1,4), %%eax" : : "r"(table), "r"(i) : "rax");
    // EXPECT memcheck uninit-value size=8 origin=heap:-2
}

CASE(array_index_store)
{
    static int table[256];
    u8 *p = block(1);
    u64 i = *(volatile u8 *)p;
    __asm__ volatile("movl $1, (%0,%1,4)" : : "r"(table), "r"(i) : "memory");
    // EXPECT memcheck uninit-value size=8 origin=heap:-2
}

CASE(array_index_defined)
{
    static int table[256];
    u8 *p = zeroed_block(1);
    u64 i = *(volatile u8 *)p;
    __asm__ volatile("movl $1, (%0,%1,4)" : : "r"(table), "r"(i) : "memory");
}

CASE(masked_then_set)
{
    static int target;
    void **p = (void **)block(8);
    u64 keep = (u64)&target;
    __asm__ volatile("movq (%0), %%rax\n\tandq $0, %%rax\n\torq %1, %%rax" : : "r"(p), "r"(keep) : "rax", "cc");
    free(p);
}

static int add(int a, int b)
{
    return a + b;
}

CASE(call_through_undefined)
{
    typedef int (*Function)(int, int);
    static Function function = add;
    VALGRIND_MAKE_MEM_UNDEFINED(&function, sizeof function);
    __asm__ volatile("xorl %%edi, %%edi\n\txorl %%esi, %%esi\n\tmovq %0, %%rax\n\tsubq $136, %%rsp\n\tcall *%%rax\n\taddq $136, %%rsp" : : "m"(function) : "rax", "rdi", "rsi", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    // EXPECT memcheck uninit-value size=8 origin=client:-1
}

CASE(conditional_move)
{
    u32 *p = (u32 *)block(4);
    u32 v = *(volatile u32 *)p;
    u64 a = 1, b = 2;
    __asm__ volatile("testl %2, %2\n\tcmovzq %1, %0" : "+r"(a) : "r"(b), "r"(v) : "cc");
    BRANCH(a); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(set_condition_is_only_data)
{
    u32 *p = (u32 *)block(4);
    u32 v = *(volatile u32 *)p;
    u8 r;
    __asm__ volatile("testl %1, %1\n\tsetz %0" : "=q"(r) : "r"(v) : "cc");
    BRANCH(r); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(set_condition_unused)
{
    u32 *p = (u32 *)block(4);
    u32 v = *(volatile u32 *)p;
    u8 r;
    __asm__ volatile("testl %1, %1\n\tsetz %0" : "=q"(r) : "r"(v) : "cc");
    HIDE(r);
}

CASE(copied_then_used)
{
    char *p = (char *)block(64), *q = (char *)block(64);
    memcpy(q, p, 64);
    BRANCH(q[63]); // EXPECT memcheck uninit-branch origin=heap:-2
}

CASE(copied_and_never_used)
{
    char *p = (char *)block(64), *q = (char *)block(64);
    memcpy(q, p, 64);
    memmove(q + 1, q, 60);
    free(p);
    free(q);
}

CASE(added_then_used)
{
    u64 *p = (u64 *)block(8);
    u64 v = *(volatile u64 *)p + 12345;
    HIDE(v);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(multiplied_then_used)
{
    u64 *p = (u64 *)block(8);
    u64 v = *(volatile u64 *)p * 3;
    HIDE(v);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(divided)
{
    u32 *p = (u32 *)block(4);
    u32 v = *(volatile u32 *)p | 1;
    HIDE(v);
    u32 r = 1000;
    __asm__ volatile("xorl %%edx, %%edx\n\tdivl %1" : "+a"(r) : "r"(v) : "rdx", "cc");
    BRANCH(r); // EXPECT memcheck uninit-branch origin=heap:-5
}

CASE(shifted_count)
{
    u8 *p = block(1);
    u8 count = *(volatile u8 *)p;
    u64 v = 1;
    __asm__ volatile("shlq %%cl, %0" : "+r"(v) : "c"(count) : "cc");
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(partly_written)
{
    u8 *p = block(8);
    memset(p, 0, 7);
    BRANCH(*(volatile u64 *)p); // EXPECT memcheck uninit-branch origin=heap:-2
}

static NOINLINE int take(int x);
CASE(passed_to_a_function)
{
    int *p = (int *)block(4);
    take(*(volatile int *)p);
}
static NOINLINE int take(int x)
{
    BRANCH(x); // EXPECT memcheck uninit-branch origin=heap:-5
    return x;
}

static NOINLINE int give(int *p)
{
    return *(volatile int *)p;
}

CASE(returned_from_a_function)
{
    int *p = (int *)block(4);
    int v = give(p);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-2
}

static NOINLINE u64 leaves_frame(void)
{
    volatile u64 local[32];
    for (int i = 0; i < 32; i++)
        local[i] = i;
    return local[5];
}

static NOINLINE void reads_frame(void);
CASE(stack_left_by_another_call)
{
    leaves_frame();
    reads_frame();
}
static NOINLINE void reads_frame(void)
{
    volatile u64 local[32];
    BRANCH(local[10]); // EXPECT memcheck uninit-branch origin=stack
}

CASE(alloca_undefined)
{
    volatile u8 *p = (u8 *)__builtin_alloca(200);
    BRANCH(p[100]); // EXPECT memcheck uninit-branch origin=stack
}

CASE(alloca_defined)
{
    u8 *p = (u8 *)__builtin_alloca(200);
    memset(p, 0, 200);
    HIDE(p);
    BRANCH(p[100]);
}

CASE(loop_bound)
{
    volatile u8 *p = block(1);
    u8 n = *p & 3;
    HIDE(n);
    volatile int sum = 0;
    for (u8 i = 0; i < n; i++) // EXPECT memcheck uninit-branch origin=heap:-4
        sum += i;
}

CASE(switch_value)
{
    volatile u8 *p = block(1);
    u32 v = *p;
    HIDE(v);
    volatile int r = 0;
    switch (v) { // EXPECT memcheck uninit-branch origin=heap:-4 MAYBE memcheck uninit-value
    case 200: r = 1; break;
    case 5: r = 2; break;
    case 77: r = 3; break;
    }
}

CASE(struct_field_forgotten)
{
    struct Point { int x, y, z; };
    struct Point *p = (struct Point *)block(sizeof *p);
    p->x = 1, p->y = 2;
    HIDE(p);
    BRANCH(p->x + p->y);
    BRANCH(p->x + p->z); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(reported_once_then_defined)
{
    u32 *p = (u32 *)block(4);
    u32 v = *(volatile u32 *)p;
    for (int i = 0; i < 10; i++)
        BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(not_tracked_when_not_wanted)
{
    // OPTIONS --track-origins=no --undef-value-errors=no
    u32 *p = (u32 *)block(4);
    BRANCH(*(volatile u32 *)p);
    READ4(p + 1); // EXPECT memcheck invalid-read size=4 block=after:0 of=4
}

CASE(no_origins_when_not_wanted)
{
    // OPTIONS --track-origins=no
    u32 *p = (u32 *)block(4);
    BRANCH(*(volatile u32 *)p); // EXPECT memcheck uninit-branch origin=none
}

CASE(malloc_fill_does_not_define)
{
    // OPTIONS --malloc-fill=0x5a
    u8 *p = block(4);
    u8 v = p[1];
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-2
    VALGRIND_MAKE_MEM_DEFINED(p, 4);
    CHECK(*(volatile u8 *)p == 0x5a);
}

CASE(free_fill)
{
    // OPTIONS --free-fill=0x7b
    u8 *p = block(40);
    memset(p, 0, 40);
    free(p);
    HIDE(p);
    u8 v;
    __asm__ volatile("movb 20(%1), %0" : "=q"(v) : "r"(p));
    // EXPECT memcheck invalid-read size=1 state=freed
    VALGRIND_MAKE_MEM_DEFINED(&v, 1);
    CHECK(v == 0x7b);
}

typedef struct Three {
    u64 a, b, c;
} Three;

static void take_three(Three three);
static void take_long_double(long double value);

CASE(struct_passed_by_value_in_a_loop)
{
    void (*take)(Three) = take_three;
    u64 found = 0;
    HIDE(take);
    for (u32 i = 0; i < 10000; i++) {
        Three *p = (Three *)zeroed_block(sizeof(Three));
        take(*p);
        free(p);
        p = (Three *)block(sizeof(Three));
        p->a = p->c = i;
        u64 before = VALGRIND_COUNT_ERRORS;
        take(*p);
        found += VALGRIND_COUNT_ERRORS - before;
        free(p);
    }
    CHECK(found == 10000);
}

static NOINLINE void take_three(Three three)
{
    BRANCH(three.b); // EXPECT memcheck uninit-branch origin=heap:-12
}

CASE(long_double_passed_by_value_in_a_loop)
{
    void (*take)(long double) = take_long_double;
    u64 found = 0;
    HIDE(take);
    for (u32 i = 0; i < 10000; i++) {
        long double *p = (long double *)block(sizeof(long double));
        u64 before = VALGRIND_COUNT_ERRORS;
        take(*p);
        found += VALGRIND_COUNT_ERRORS - before;
        free(p);
    }
    CHECK(found == 10000);
}

static NOINLINE void take_long_double(long double value)
{
    u64 bits;
    memcpy(&bits, &value, sizeof(bits));
    BRANCH(bits); // EXPECT memcheck uninit-branch origin=heap:-13
}
