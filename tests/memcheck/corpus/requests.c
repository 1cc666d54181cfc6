// SPDX-License-Identifier: MIT
//
// Client requests of memcheck.h: marking, checking, V bits, blocks a program makes itself, pools,
// and what constant-time tests of cryptographic code rely on.
#include "corpus.h"

#include <valgrind/memcheck.h>

CASE(make_noaccess)
{
    u8 *p = zeroed_block(16);
    VALGRIND_MAKE_MEM_NOACCESS(p + 4, 4);
    READ1(p + 3);
    READ1(p + 8);
    READ1(p + 4); // EXPECT memcheck invalid-read size=1 block=inside:4 of=16
}

CASE(make_noaccess_global)
{
    static u8 global[64];
    VALGRIND_MAKE_MEM_NOACCESS(global + 16, 16);
    WRITE4(global + 20); // EXPECT memcheck invalid-write size=4
    VALGRIND_MAKE_MEM_DEFINED(global, 64);
    WRITE4(global + 20);
}

CASE(make_noaccess_long)
{
    static u8 global[100000];
    VALGRIND_MAKE_MEM_NOACCESS(global + 1, 99998);
    READ1(global);
    READ1(global + 99999);
    READ1(global + 99998); // EXPECT memcheck invalid-read size=1
    READ1(global + 1); // EXPECT memcheck invalid-read size=1
    READ8(global + 50000); // EXPECT memcheck invalid-read size=8
}

CASE(make_undefined_long)
{
    static u8 global[100000];
    VALGRIND_MAKE_MEM_UNDEFINED(global + 1, 99998);
    BRANCH(((volatile u8 *)global)[0]);
    BRANCH(((volatile u8 *)global)[99999]);
    BRANCH(((volatile u8 *)global)[50000]); // EXPECT memcheck uninit-branch origin=client:-3
}

CASE(make_defined_if_addressable)
{
    u8 *p = block(16);
    VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(p, 32);
    BRANCH(p[15]);
    READ1(p + 16); // EXPECT memcheck invalid-read size=1 block=after:0 of=16
}

CASE(check_defined)
{
    u8 *p = block(16);
    memset(p, 0, 8);
    CHECK(VALGRIND_CHECK_MEM_IS_DEFINED(p, 8) == 0);
    u64 at = VALGRIND_CHECK_MEM_IS_DEFINED(p, 16);
    // EXPECT memcheck client-check bad=uninitialised block=inside:8 of=16 origin=heap:-3
    CHECK(at == (u64)(p + 8));
}

CASE(check_addressable)
{
    u8 *p = block(16);
    CHECK(VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 16) == 0);
    u64 at = VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 17);
    // EXPECT memcheck client-check bad=unaddressable block=after:0 of=16
    CHECK(at == (u64)(p + 16));
}

CASE(check_value)
{
    int *p = (int *)block(4);
    int v = *(volatile int *)p;
    VALGRIND_CHECK_VALUE_IS_DEFINED(v); // EXPECT memcheck client-check bad=uninitialised
}

CASE(check_value_defined)
{
    volatile int v = 5;
    CHECK(VALGRIND_CHECK_VALUE_IS_DEFINED(v) == 0);
}

CASE(get_vbits)
{
    u8 *p = block(4), bits[4];
    p[1] = 5;
    p[2] &= 0x0f;
    CHECK(VALGRIND_GET_VBITS(p, bits, 4) == 1);
    CHECK(bits[0] == 0xff && bits[1] == 0 && bits[2] == 0x0f && bits[3] == 0xff);
}

// Called by name, with rsp just below what was left and taken again.
__attribute__((used)) static NOINLINE void expect_undefined(const u8 *from, u64 size)
{
    u8 bits[1024];
    u64 undefined = 0;
    CHECK(VALGRIND_GET_VBITS(from, bits, size) <= 1);
    for (u64 i = 0; i < size; i++)
        undefined += bits[i] == 0xff;
    CHECK(!RUNNING_ON_VALGRIND || undefined == size);
}

// Marks of what rsp leaves, few or many, cover all of it and change no register.
#define LEAVE(bytes) \
    do { \
        u64 word[2]; \
        __asm__ volatile("movq %%rsp, %%rbx\n\tsubq $256 + " #bytes ", %%rsp\n\tandq $-64, %%rsp\n\t" \
                         "movq %%rsp, %%rdi\n\tmovl $" #bytes ", %%ecx\n\txorl %%eax, %%eax\n\trep stosb\n\t" \
                         "movl $0x1234567, %%eax\n\tmovq %%rax, %%xmm0\n\tpunpcklqdq %%xmm0, %%xmm0\n\t" \
                         "addq $" #bytes ", %%rsp\n\tsubq $" #bytes ", %%rsp\n\tmovups %%xmm0, (%0)\n\t" \
                         "movq %%rsp, %%rdi\n\tmovl $" #bytes ", %%esi\n\tcall expect_undefined\n\t" \
                         "movq %%rbx, %%rsp" \
                         : : "r"(word) : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", \
                           "xmm0", "cc", "memory"); \
        CHECK(word[0] == 0x1234567 && word[1] == 0x1234567); \
    } while (0)

CASE(left_stack_is_undefined)
{
    // NOT-VALGRIND left-stack
    LEAVE(8);
    LEAVE(72);
    LEAVE(80);
    LEAVE(88);
    LEAVE(96);
    LEAVE(104);
    LEAVE(256);
    LEAVE(504);
    LEAVE(512);
    LEAVE(520);
    LEAVE(83);
}

CASE(prefetches_touch_nothing)
{
    u8 *p = block(8);
    __asm__ volatile("prefetcht0 (%0)\n\tprefetchnta 8(%0)\n\tprefetcht0 0\n\tprefetcht0 (%1)"
                     : : "r"(p), "r"(0x8000000000000000ull));
}

CASE(get_vbits_unaddressable)
{
    u8 *p = block(4), bits[8];
    CHECK(VALGRIND_GET_VBITS(p, bits, 5) == 3);
}

// All of a block and nothing beside it: V is what its bytes must be.
static NOINLINE void expect_block(const u8 *p, u64 size, u8 v)
{
    u8 bits[800];
    u64 wrong = 0;
    CHECK(VALGRIND_GET_VBITS(p, bits, size) <= 1);
    CHECK(!RUNNING_ON_VALGRIND || VALGRIND_GET_VBITS(p - 1, bits, 1) == 3);
    CHECK(!RUNNING_ON_VALGRIND || VALGRIND_GET_VBITS(p + size, bits, 1) == 3);
    VALGRIND_GET_VBITS(p, bits, size);
    for (u64 i = 0; i < size; i++)
        wrong += bits[i] != v;
    CHECK(!RUNNING_ON_VALGRIND || wrong == 0);
}

// What is freed again and again comes again, too: blocks that others have used, of all lengths.
CASE(marks_of_blocks_of_every_size)
{
    for (u64 i = 0; i < 9 * 700; i++) {
        u64 size = i * 37 % 700;
        u8 *p = (u8 *)malloc(size), *q = (u8 *)calloc(1, size), bits;
        expect_block(p, size, 0xff);
        expect_block(q, size, 0);
        memset(p, 5, size);
        expect_block(p, size, 0);
        free(p);
        free(q);
        for (u64 k = 0; k < size; k += 1 + i % 7) {
            CHECK(!RUNNING_ON_VALGRIND || VALGRIND_GET_VBITS(p + k, &bits, 1) == 3);
            CHECK(!RUNNING_ON_VALGRIND || VALGRIND_GET_VBITS(q + k, &bits, 1) == 3);
        }
        CHECK(!RUNNING_ON_VALGRIND || !size || VALGRIND_GET_VBITS(p + size - 1, &bits, 1) == 3);
    }
}

CASE(set_vbits)
{
    u8 *p = zeroed_block(4), bits[4] = {0, 0x10, 0, 0};
    CHECK(VALGRIND_SET_VBITS(p, bits, 4) == 1);
    BRANCH(p[0]);
    BRANCH(p[1] & 0xef);
    BRANCH(p[1] & 0x10); // EXPECT memcheck uninit-branch
}

// What requests of the core write is defined, and nothing behind it. The incumbent does not know
// the first, and leaves what the second wrote undefined.
enum { TOOL_NAME = 0x4d550001 }; // muninn/client.h; other tools answer with 0

CASE(name_of_the_tool)
{
    char *name = (char *)block(20);
    u64 length = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, TOOL_NAME, name, 5, 0, 0, 0);
    CHECK(length == 0 || (length == 8 && strcmp(name, "memc") == 0));
    BRANCH(((volatile char *)name)[5]); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(place_of_code)
{
    char *text = (char *)block(64);
    VALGRIND_MAP_IP_TO_SRCLOC((void *)place_of_code_case, text);
    VALGRIND_MAKE_MEM_DEFINED(text, 11 + 4);
    CHECK(strncmp(text, "requests.c:", 11) == 0);
    CHECK(atoi(text + 11) < __LINE__ && atoi(text + 11) >= __LINE__ - 7);
    BRANCH(((volatile char *)text)[63]); // EXPECT memcheck uninit-branch origin=heap:-5
}

CASE(place_of_no_code)
{
    char text[64] = "x";
    VALGRIND_MAP_IP_TO_SRCLOC(8, text);
    CHECK(text[0] == 0);
}

CASE(place_in_a_small_block) // NOT-VALGRIND answers
{
    char *text = (char *)block(4);
    VALGRIND_MAP_IP_TO_SRCLOC((void *)place_of_code_case, text); // EXPECT memcheck client-check
    CHECK(memcmp(text, "requ", 4) == 0);
    BRANCH(((volatile char *)text)[4]); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
}

// A function that the program has brought along for the tool, by its name.
NOINLINE int replaced(int n)
{
    __asm__ volatile("" : "+r"(n));
    return n;
}
int _vgr00000ZU_NONE_replaced(int n)
{
    return n + 100;
}
int _vgr00000ZU_libnotthereZdso_kept(int n)
{
    return n + 100;
}
NOINLINE int kept(int n)
{
    __asm__ volatile("" : "+r"(n));
    return n;
}

CASE(replacement_by_name)
{
    int (*volatile function)(int) = replaced;
    CHECK(replaced(1) == 101 && function(2) == 102 && kept(3) == 3);
    int *p = (int *)block(4);
    int v = function(*p);
    BRANCH(v); // EXPECT memcheck uninit-branch origin=heap:-2
}

CASE(running_on)
{
    CHECK(RUNNING_ON_VALGRIND == 1);
}

CASE(count_errors)
{
    u8 *p = block(4);
    CHECK(VALGRIND_COUNT_ERRORS == 0);
    READ1(p + 4); // EXPECT memcheck invalid-read size=1
    CHECK(VALGRIND_COUNT_ERRORS == 1);
}

CASE(errors_disabled)
{
    u8 *p = block(4);
    VALGRIND_DISABLE_ERROR_REPORTING;
    READ1(p + 4);
    VALGRIND_ENABLE_ERROR_REPORTING;
    READ1(p + 4); // EXPECT memcheck invalid-read size=1 block=after:0 of=4
}

CASE(range_ignored)
{
    u8 *p = block(4);
    VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(p + 4, 4);
    READ1(p + 4);
    READ1(p + 8); // EXPECT memcheck invalid-read size=1 block=after:4 of=4
    VALGRIND_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE(p + 4, 4);
    READ1(p + 5); // EXPECT memcheck invalid-read size=1 block=after:1 of=4
}

CASE(range_ignored_in_a_copy)
{
    u8 *p = block(16), *q = zeroed_block(64);
    size_t ignored = 24, more = 26;
    HIDE(ignored);
    HIDE(more);
    VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(p + 16, 8);
    memset(p, 1, ignored);
    memset(p, 1, more); // EXPECT memcheck invalid-write block=after:8 of=16
    memcpy(p, q, more); // EXPECT memcheck invalid-write block=after:8 of=16
    HIDE(p);
    memcpy(q, p, more); // EXPECT memcheck invalid-read block=after:8 of=16
    HIDE(q);
    memcpy(q, p, ignored);
    VALGRIND_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE(p + 16, 8);
}

CASE(create_block)
{
    static u8 arena[256];
    VALGRIND_MAKE_MEM_NOACCESS(arena, sizeof arena);
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 32, 16, 0);
    WRITE8(arena + 64);
    BRANCH(((volatile u8 *)arena)[64]);
    WRITE1(arena + 96); // EXPECT memcheck invalid-write size=1 block=after:0 of=32 alloc=-3
    VALGRIND_FREELIKE_BLOCK(arena + 64, 16);
    WRITE1(arena + 70);
    // EXPECT memcheck invalid-write size=1 block=inside:6 of=32 state=freed free=-1
}

CASE(create_block_is_undefined)
{
    static u8 arena[256];
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 32, 0, 0);
    BRANCH(((volatile u8 *)arena)[64]); // EXPECT memcheck uninit-branch origin=heap:-1
    VALGRIND_FREELIKE_BLOCK(arena + 64, 0);
}

CASE(create_block_zeroed)
{
    static u8 arena[256];
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 32, 0, 1);
    BRANCH(((volatile u8 *)arena)[64]);
    VALGRIND_FREELIKE_BLOCK(arena + 64, 0);
}

CASE(create_block_without_redzone)
{
    static u8 arena[256];
    VALGRIND_MAKE_MEM_NOACCESS(arena, sizeof arena);
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 32, 0, 0);
    WRITE1(arena + 63); // EXPECT memcheck invalid-write size=1 block=before:1 of=32 alloc=-1
    WRITE1(arena + 96); // EXPECT memcheck invalid-write size=1 block=after:0 of=32 alloc=-2
    VALGRIND_FREELIKE_BLOCK(arena + 64, 0);
    WRITE1(arena + 96); // EXPECT memcheck invalid-write size=1 block=after:0 of=32 state=freed
}

CASE(free_block_of_malloc)
{
    u8 *p = block(100), *q = block(2 << 20);
    VALGRIND_FREELIKE_BLOCK(p, 0); // EXPECT memcheck mismatched-free block=inside:0 of=100
    VALGRIND_FREELIKE_BLOCK(q, 0); // EXPECT memcheck mismatched-free block=inside:0 of=2097152
    WRITE1(p + 3); // EXPECT memcheck invalid-write block=inside:3 of=100 state=freed free=-2
    free(p);       // EXPECT memcheck invalid-free block=inside:0 of=100 state=freed
}

CASE(free_block_twice)
{
    static u8 arena[256];
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 32, 0, 1);
    VALGRIND_FREELIKE_BLOCK(arena + 64, 0);
    VALGRIND_FREELIKE_BLOCK(arena + 64, 0); // EXPECT memcheck invalid-free
}

CASE(named_block)
{
    static u8 arena[256];
    VALGRIND_CREATE_BLOCK(arena + 16, 32, "my arena");
    VALGRIND_MAKE_MEM_NOACCESS(arena + 16, 32);
    READ1(arena + 20); // EXPECT memcheck invalid-read size=1
}

CASE(pool)
{
    u8 *arena = block(1024);
    VALGRIND_CREATE_MEMPOOL(arena, 8, 0);
    VALGRIND_MAKE_MEM_NOACCESS(arena, 1024);
    VALGRIND_MEMPOOL_ALLOC(arena, arena + 100, 20);
    memset(arena + 100, 0, 20);
    READ1(arena + 119);
    READ1(arena + 120);
    // EXPECT-MUNINN memcheck invalid-read block=after:0 of=20 state=client alloc=-3 why=after-requests
    // EXPECT-VALGRIND memcheck invalid-read block=after:0 of=20 state=client why=after-requests
    VALGRIND_MEMPOOL_FREE(arena, arena + 100);
    READ1(arena + 101); // EXPECT memcheck invalid-read size=1
    VALGRIND_DESTROY_MEMPOOL(arena);
}

CASE(pool_used_rightly)
{
    u8 *arena = block(1024);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
    VALGRIND_MAKE_MEM_NOACCESS(arena, 1024);
    for (int i = 0; i < 10; i++) {
        VALGRIND_MEMPOOL_ALLOC(arena, arena + i * 64, 48);
        memset(arena + i * 64, 0, 48);
        BRANCH(arena[i * 64 + 47]);
    }
    CHECK(VALGRIND_MEMPOOL_EXISTS(arena));
    for (int i = 0; i < 10; i += 2)
        VALGRIND_MEMPOOL_FREE(arena, arena + i * 64);
    VALGRIND_DESTROY_MEMPOOL(arena);
    CHECK(!VALGRIND_MEMPOOL_EXISTS(arena));
}

CASE(pool_zeroed)
{
    u8 *arena = zeroed_block(256);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 1);
    VALGRIND_MEMPOOL_ALLOC(arena, arena + 10, 10);
    BRANCH(arena[12]);
    VALGRIND_DESTROY_MEMPOOL(arena);
}

CASE(pool_is_undefined)
{
    u8 *arena = zeroed_block(256);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
    VALGRIND_MEMPOOL_ALLOC(arena, arena + 10, 10);
    BRANCH(arena[12]); // EXPECT memcheck uninit-branch origin=heap:-1
}

CASE(pool_that_does_not_exist)
{
    u8 *arena = block(256);
    VALGRIND_MEMPOOL_ALLOC(arena, arena + 10, 10); // EXPECT memcheck invalid-pool
}

CASE(pool_destroyed_twice)
{
    u8 *arena = block(256);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
    VALGRIND_DESTROY_MEMPOOL(arena);
    VALGRIND_DESTROY_MEMPOOL(arena); // EXPECT memcheck invalid-pool
}

CASE(pool_free_of_nothing)
{
    u8 *arena = block(256);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
    VALGRIND_MEMPOOL_FREE(arena, arena + 5); // EXPECT memcheck invalid-free
    VALGRIND_DESTROY_MEMPOOL(arena);
}

CASE(pool_trimmed)
{
    u8 *arena = block(1024);
    VALGRIND_CREATE_MEMPOOL(arena, 0, 0);
    VALGRIND_MAKE_MEM_NOACCESS(arena, 1024);
    VALGRIND_MEMPOOL_ALLOC(arena, arena, 64);
    VALGRIND_MEMPOOL_ALLOC(arena, arena + 512, 64);
    VALGRIND_MEMPOOL_TRIM(arena, arena, 256);
    WRITE1(arena + 10);
    WRITE1(arena + 520); // EXPECT memcheck invalid-write size=1
    VALGRIND_DESTROY_MEMPOOL(arena);
}

// Compares two secrets in constant time, or as beginners do.
static NOINLINE int equal_constant_time(const u8 *a, const u8 *b, int n)
{
    u8 difference = 0;
    for (int i = 0; i < n; i++)
        difference |= a[i] ^ b[i];
    return 1 & ((difference - 1) >> 8);
}

CASE(constant_time_comparison)
{
    u8 key[16] = {1, 2, 3}, guess[16] = {1, 2, 4};
    u8 *secret = key;
    HIDE(secret);
    VALGRIND_MAKE_MEM_UNDEFINED(secret, 16);
    int same = equal_constant_time(secret, guess, 16);
    VALGRIND_MAKE_MEM_DEFINED(&same, sizeof same);
    CHECK(same == 0);
}

static NOINLINE int equal_at_once(const u8 *a, const u8 *b, int n);
CASE(comparison_that_leaks_the_key)
{
    u8 key[16] = {1, 2, 3}, guess[16] = {1, 2, 4};
    u8 *secret = key;
    HIDE(secret);
    VALGRIND_MAKE_MEM_UNDEFINED(secret, 16);
    int same = equal_at_once(secret, guess, 16);
    CHECK(same == 0);
}
static NOINLINE int equal_at_once(const u8 *a, const u8 *b, int n)
{
    for (int i = 0; i < n; i++)
        if (((volatile u8 *)a)[i] != b[i])
            // EXPECT-MUNINN memcheck uninit-branch origin=client:-7 why=after-requests
            // EXPECT-VALGRIND memcheck uninit-branch origin=client why=after-requests
            return 0;
    return 1;
}

CASE(table_lookup_that_leaks_the_key)
{
    static u8 table[256], key;
    VALGRIND_MAKE_MEM_UNDEFINED(&key, 1);
    u64 i = *(volatile u8 *)&key;
    __asm__ volatile("movzbl (%0,%1), %%eax" : : "r"(table), "r"(i) : "rax");
    // EXPECT-MUNINN memcheck uninit-value size=8 origin=client:-2 why=after-requests
    // EXPECT-VALGRIND memcheck uninit-value size=8 origin=client why=after-requests
}

CASE(printf_of_the_tool)
{
    VALGRIND_PRINTF("%d\n", 5);
}

// Leaves a register undefined that a caller need not find again.
__attribute__((noinline)) static unsigned long spoil(unsigned long thread)
{
    u64 *p = (u64 *)block(8);
    u64 undefined = *(volatile u64 *)p;
    __asm__ volatile("mov %0, %%rcx" : : "r"(undefined) : "rcx");
    return thread;
}

CASE(call_leaves_registers_alone)
{
    unsigned long request[6] = { VG_USERREQ__CLIENT_CALL0, (unsigned long)spoil };
    unsigned long result = 99, before = 5, after;
    __asm__ volatile("mov %[before], %%rcx\n\t"
                     "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx\n\t"
                     "mov %%rcx, %[after]"
                     : "+d"(result), [after] "=r"(after)
                     : [before] "r"(before), "a"(request)
                     : "rcx", "cc", "memory");
    BRANCH(after == 5 && result != 99);
}

__attribute__((noinline)) static unsigned long look_where_it_returns(unsigned long thread)
{
    BRANCH(__builtin_return_address(0) != NULL);
    return thread;
}

CASE(call_returns_to_a_defined_address)
{
    BRANCH(VALGRIND_NON_SIMD_CALL0(look_where_it_returns) != 99);
}
