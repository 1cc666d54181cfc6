// SPDX-License-Identifier: MIT
//
// Heap errors as C programs make them: off by one, wrong element size, freed lists, blocks that
// moved, and partial loads at every alignment, with their clean twins.
#include "corpus.h"

CASE(loop_one_too_many)
{
    volatile int *a = (int *)block(10 * sizeof(int));
    for (int i = 0; i <= 10; i++) // MAYBE-VALGRIND memcheck invalid-write size=4 block=after:0 of=40 why=lines
        a[i] = i; // EXPECT-MUNINN memcheck invalid-write size=4 block=after:0 of=40 alloc=-2 why=lines
    // MAYBE-VALGRIND memcheck invalid-write size=4 block=after:0 of=40 alloc=-2 why=lines
    free((void *)a);
}

CASE(loop_right)
{
    volatile int *a = (int *)block(10 * sizeof(int));
    for (int i = 0; i < 10; i++)
        a[i] = i;
    free((void *)a);
}

CASE(string_without_terminator)
{
    char *s = (char *)block(5);
    memcpy(s, "hello", 5);
    volatile char c = 0;
    for (int i = 0; i < 6; i++)
        c = ((volatile char *)s)[i]; // EXPECT memcheck invalid-read size=1 block=after:0 of=5
    free(s);
}

CASE(negative_index)
{
    volatile short *a = (short *)block(8);
    a[-1] = 1; // EXPECT memcheck invalid-write size=2 block=before:2 of=8
    free((void *)a);
}

CASE(far_behind)
{
    volatile u8 *p = block(100);
    volatile u8 x = p[100 + 9]; // EXPECT memcheck invalid-read size=1 block=after:9 of=100
    free((void *)p);
}

struct Node {
    struct Node *next;
    int value;
};

static NOINLINE struct Node *list_of(int count)
{
    struct Node *head = NULL;
    for (int i = 0; i < count; i++) {
        struct Node *node = (struct Node *)malloc(sizeof *node);
        node->next = head;
        node->value = i;
        head = node;
    }
    return head;
}

CASE(list_freed_while_walked)
{
    for (volatile struct Node *n = list_of(3); n;) {
        free((void *)n);
        n = n->next; // EXPECT memcheck invalid-read size=8 block=inside:0 of=16 state=freed free=-1
    }
}

CASE(list_freed_rightly)
{
    for (volatile struct Node *n = list_of(3); n;) {
        struct Node *next = n->next;
        free((void *)n);
        n = next;
    }
}

CASE(field_behind_short_struct)
{
    volatile struct Node *n = (struct Node *)block(8);
    n->value = 1; // EXPECT memcheck invalid-write size=4 block=after:0 of=8
    free((void *)n);
}

CASE(realloc_old_pointer)
{
    // ONLY gcc-O0 gcc-O2
    volatile int *old = (int *)block(16);
    old[0] = 1;
    volatile int *new = (int *)realloc((void *)old, 4000);
    int *stale = (int *)old;
    HIDE(stale);
    *(volatile int *)stale = 2;
    // EXPECT memcheck invalid-write size=4 block=inside:0 of=16 state=freed
    free((void *)new);
}

CASE(realloc_shrunk)
{
    u8 *p = block(100);
    p = (u8 *)realloc(p, 10);
    HIDE(p);
    *(volatile u8 *)(p + 10) = 1;
    // EXPECT memcheck invalid-write size=1 block=after:0 of=10 alloc=-2
    free(p);
}

CASE(realloc_grown)
{
    int *p = (int *)block(4 * sizeof(int));
    for (int i = 0; i < 4; i++)
        p[i] = i;
    for (int n = 8; n <= 512; n *= 2) {
        p = (int *)realloc(p, n * sizeof(int));
        HIDE(p);
        for (int i = n / 2; i < n; i++)
            p[i] = i;
    }
    int sum = 0;
    for (int i = 0; i < 512; i++)
        sum += p[i];
    CHECK(sum == 512 * 511 / 2);
    free(p);
}

CASE(realloc_grown_tail_is_undefined)
{
    u8 *p = (u8 *)calloc(1, 16);
    p = (u8 *)realloc(p, 64);
    HIDE(p);
    BRANCH(p[15]);
    BRANCH(p[16]); // EXPECT memcheck uninit-branch origin=heap:-3
    free(p);
}

// Slots of these sizes are at hand: the quick form of realloc does it.
static void warm(void)
{
    for (int size = 16; size <= 64; size += 16)
        free(block(size));
}

CASE(realloc_quick_keeps_what_is_undefined)
{
    warm();
    u8 *p = block(20);
    p[3] = 1;
    p = (u8 *)realloc(p, 50);
    HIDE(p);
    BRANCH(p[3]);
    BRANCH(p[4]);  // EXPECT memcheck uninit-branch
    BRANCH(p[24]); // EXPECT memcheck uninit-branch origin=heap:-4
    free(p);
}

CASE(realloc_quick_old_and_end)
{
    // ONLY gcc-O0 gcc-O2
    warm();
    volatile u8 *old = block(40);
    old[7] = 1;
    u8 *p = (u8 *)realloc((void *)old, 24), *stale = (u8 *)old;
    HIDE(p);
    HIDE(stale);
    CHECK(p[7] == 1);
    *(volatile u8 *)(p + 24) = 2;
    // EXPECT memcheck invalid-write size=1 block=after:0 of=24 alloc=-4
    *(volatile u8 *)(stale + 7) = 2;
    // EXPECT memcheck invalid-write size=1 block=inside:7 of=40 state=freed free=-6
    free(p);
}

CASE(realloc_quick_of_nothing)
{
    warm();
    u8 *p = (u8 *)realloc(NULL, 30);
    HIDE(p);
    BRANCH(p[29]); // EXPECT memcheck uninit-branch origin=heap:-2
    free(p);
}

CASE(zero_size_block)
{
    volatile u8 *p = block(0);
    p[0] = 1; // EXPECT memcheck invalid-write size=1 block=after:0 of=0 alloc=-1
    free((void *)p);
}

CASE(calloc_is_zero)
{
    long *p = (long *)calloc(100, sizeof(long));
    HIDE(p);
    for (int i = 0; i < 100; i++)
        BRANCH(p[i]);
    free(p);
}

CASE(calloc_overrun)
{
    long *p = (long *)calloc(10, sizeof(long));
    HIDE(p);
    BRANCH(p[10]); // EXPECT memcheck invalid-read size=8 block=after:0 of=80 alloc=-2
    free(p);
}

CASE(aligned_alloc_overrun)
{
    u8 *p = (u8 *)aligned_alloc(256, 256);
    HIDE(p);
    CHECK((uintptr_t)p % 256 == 0);
    p[255] = 1;
    *(volatile u8 *)(p + 256) = 1;
    // EXPECT memcheck invalid-write size=1 block=after:0 of=256 alloc=-4
    free(p);
}

CASE(posix_memalign_underrun)
{
    void *p = NULL;
    CHECK(posix_memalign(&p, 4096, 100) == 0);
    HIDE(p);
    CHECK((uintptr_t)p % 4096 == 0);
    *((volatile u8 *)p - 1) = 1;
    // EXPECT memcheck invalid-write size=1 block=before:1 of=100 alloc=-3
    free(p);
}

CASE(aligned_blocks)
{
    for (size_t align = 16; align <= 65536; align *= 2) {
        u8 *p = (u8 *)aligned_alloc(align, align);
        HIDE(p);
        CHECK((uintptr_t)p % align == 0);
        memset(p, 1, align);
        BRANCH(p[align - 1]);
        free(p);
    }
}

CASE(big_block_overrun)
{
    u8 *p = block(3 << 20);
    *(volatile u8 *)(p + (3 << 20)) = 1;
    // EXPECT memcheck invalid-write size=1 block=after:0 of=3145728
    free(p);
}

CASE(big_block_freed)
{
    u8 *p = block(3 << 20);
    p[1 << 20] = 1;
    free(p);
    HIDE(p);
    *(volatile u8 *)(p + (1 << 20)) = 2;
    // EXPECT memcheck invalid-write block=inside:1048576 of=3145728 state=freed
}

// What was in a block that was freed not long ago is still there, though the heap has grown since.
CASE(medium_block_freed)
{
    u8 *p = block(200 << 10), *other = block(1000 << 10);
    *(volatile u8 *)(p + (100 << 10)) = 77;
    free(p);
    free(other);
    for (int i = 0; i < 400; i++)
        *(volatile u8 *)block(60 << 10) = 1;
    HIDE(p);
    u8 value = *(volatile u8 *)(p + (100 << 10));
    // EXPECT memcheck invalid-read size=1 block=inside:102400 of=204800 state=freed
    CHECK(value == 77);
}

CASE(usable_size_is_size)
{
    size_t malloc_usable_size(void *);
    u8 *p = block(13);
    size_t n = malloc_usable_size(p);
    CHECK(n >= 13);
    memset(p, 0, n);
    free(p);
}

CASE(two_bugs_two_lines)
{
    volatile u32 *p = (u32 *)block(16);
    p[4] = 1; // EXPECT memcheck invalid-write size=4 block=after:0 of=16
    p[5] = 1; // EXPECT memcheck invalid-write size=4 block=after:4 of=16
    free((void *)p);
}

CASE(same_bug_twice_is_one)
{
    volatile u8 *p = block(16);
    for (int i = 0; i < 1000; i++) // MAYBE-VALGRIND memcheck invalid-write size=1 block=after:0 of=16 why=lines
        p[16] = i; // EXPECT memcheck invalid-write size=1 block=after:0 of=16
    free((void *)p);
}

CASE(rep_stos_overrun)
{
    u8 *p = block(16), *at = p;
    u64 n = 17;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(0) : "memory");
    // EXPECT memcheck invalid-write size=1 block=after:0 of=16
    free(p);
}

CASE(rep_movs_inside)
{
    u8 *p = (u8 *)calloc(1, 16), *q = block(16), *from = p, *to = q;
    u64 n = 2;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    for (int i = 0; i < 16; i++)
        BRANCH(q[i]);
    free(p);
    free(q);
}

CASE(read_modify_write_freed)
{
    volatile int *p = (int *)block(4);
    *p = 1;
    free((void *)p);
    int *q = (int *)p;
    HIDE(q);
    __asm__ volatile("addl $1, (%0)" : : "r"(q) : "memory", "cc");
    // EXPECT memcheck invalid-read size=4 state=freed
    // MAYBE memcheck invalid-write size=4 state=freed
}

CASE(locked_add_behind)
{
    int *q = (int *)block(8);
    __asm__ volatile("lock addl $1, 8(%0)" : : "r"(q) : "memory", "cc");
    // EXPECT memcheck invalid-read size=4 block=after:0
    // MAYBE memcheck invalid-write size=4 block=after:0
    free(q);
}

CASE(push_through_memory_operand)
{
    u64 *q = (u64 *)block(8);
    __asm__ volatile("subq $256, %%rsp\n\tpushq 8(%0)\n\taddq $264, %%rsp" : : "r"(q) : "memory", "cc");
    // EXPECT memcheck invalid-read size=8 block=after:0
    free(q);
}

CASE(free_null)
{
    void *p = NULL;
    HIDE(p);
    free(p);
}

CASE(many_blocks)
{
    enum { COUNT = 2000 };
    static u8 *p[COUNT];
    for (int i = 0; i < COUNT; i++) {
        p[i] = (u8 *)malloc(i % 300 + 1);
        memset(p[i], i, i % 300 + 1);
    }
    for (int i = 0; i < COUNT; i += 2)
        free(p[i]);
    for (int i = 1; i < COUNT; i += 2) {
        for (int k = 0; k <= i % 300; k++)
            CHECK(p[i][k] == (u8)i);
        free(p[i]);
    }
}

CASE(load_that_nobody_wants)
{
    u8 *p = block(12) + 12;
    __asm__ volatile("movl (%0), %%eax\n\tmovl $0, %%eax" : : "r"(p) : "rax");
    // EXPECT-MUNINN memcheck invalid-read size=4 block=after:0 of=12 why=dead-loads
}

// Buffers that were freed while the heap grew: their pages, and those of their V bits, are given
// back to the system.
enum { BUFFERS = 60, BUFFER_BYTES = 100000 };

static NOINLINE void make_buffers(u8 **buffers)
{
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = block(BUFFER_BYTES);
        memset(buffers[i], 1, BUFFER_BYTES);
    }
}

static NOINLINE void free_buffers(u8 **buffers)
{
    for (int i = 0; i < BUFFERS; i++)
        free(buffers[i]);
}

CASE(buffer_freed_before_the_heap_grew)
{
    u8 *old[BUFFERS], *young[BUFFERS];
    make_buffers(old);
    free_buffers(old);
    make_buffers(young);
    READ4(old[2] + 50000); // EXPECT memcheck invalid-read size=4 block=inside:50000 of=100000 state=freed
    WRITE8(old[3] + 8192); // EXPECT memcheck invalid-write size=8 block=inside:8192 of=100000 state=freed
    free_buffers(young);
}

CASE(buffer_where_others_were_long_ago)
{
    u8 *buffers[BUFFERS];
    for (int round = 0; round < 12; round++) {
        make_buffers(buffers);
        if (round % 3 == 2) {
            u8 *more[BUFFERS];
            make_buffers(more);
            free_buffers(more);
        }
        for (int i = 0; i < BUFFERS; i++)
            READ8(buffers[i] + i * 1000);
        free_buffers(buffers);
    }
    u8 *last = block(BUFFER_BYTES);
    memset(last, 0, 4096);
    BRANCH(last[100]);
    BRANCH(*(u64 *)(last + 40960)); // EXPECT memcheck uninit-branch origin=heap:-3
    free(last);
}
