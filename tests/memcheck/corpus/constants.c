// SPDX-License-Identifier: MIT
//
// Tables in memory that cannot be written to are read without guards. What becomes of that when they
// can, or when they are marked, moved or gone.
#include <sys/mman.h>
#include <valgrind/memcheck.h>

#include "corpus.h"

enum { PAGE = 4096 };
typedef struct {
    u64 word[PAGE / 8];
} Table;

static const Table table __attribute__((aligned(4096), section(".rodata.table"))) = {{5, 6, 7}};

static NOINLINE u64 bounded_by_size(u64 i)
{
    u64 value;
    __asm__ volatile("leaq %c2(%%rip), %%rdx\n\tmovzbl %b1, %%eax\n\taddl $0, %%ecx\n\t"
                     "movq (%%rdx,%%rax,8), %0"
                     : "=r"(value) : "c"(i), "i"(&table) : "rax", "rdx", "cc");
    return value;
}

static NOINLINE u64 bounded_by_branch(u64 i)
{
    u64 value;
    __asm__ volatile("leaq %c2(%%rip), %%rdx\n\tmovl %%ecx, %%eax\n\tcmpl $300, %%eax\n\tja 1f\n\t"
                     "movq (%%rdx,%%rax,8), %0\n1:"
                     : "=&r"(value) : "c"(i), "i"(&table) : "rax", "rdx", "cc");
    return value;
}

static NOINLINE u64 direct(void)
{
    u64 value;
    __asm__ volatile("movq 8+%c1(%%rip), %0" : "=r"(value) : "i"(&table));
    return value;
}

// So often that whatever is made of it has been made.
static NOINLINE void read_all(void)
{
    for (volatile int i = 0; i < 3; i++) {
        CHECK(bounded_by_size(0x302) == 7);
        CHECK(bounded_by_branch(1) == 6);
        CHECK(direct() == 6);
    }
}

static NOINLINE void open_table(void)
{
    CHECK(mprotect((void *)&table, PAGE, PROT_READ | PROT_WRITE) == 0);
}

CASE(read_only)
{
    read_all();
    BRANCH(bounded_by_size(0));
    BRANCH(bounded_by_branch(0));
    BRANCH(direct());
}

CASE(opened)
{
    // ONCE the table stays as the case leaves it
    read_all();
    open_table();
    u64 *undefined = (u64 *)block(8);
    ((volatile u64 *)&table)[1] = undefined[0];
    BRANCH(bounded_by_size(0));
    BRANCH(bounded_by_size(1)); // EXPECT memcheck uninit-branch
    BRANCH(bounded_by_branch(1)); // EXPECT memcheck uninit-branch
    BRANCH(direct()); // EXPECT memcheck uninit-branch
}

CASE(marked)
{
    read_all();
    VALGRIND_MAKE_MEM_UNDEFINED(&table.word[1], 8);
    BRANCH(bounded_by_size(1)); // EXPECT memcheck uninit-branch
    BRANCH(bounded_by_branch(1)); // EXPECT memcheck uninit-branch
    BRANCH(direct()); // EXPECT memcheck uninit-branch
}

CASE(forbidden)
{
    // ONCE the table stays as the case leaves it
    read_all();
    VALGRIND_MAKE_MEM_NOACCESS(&table.word[1], 8);
    bounded_by_size(1); // EXPECT memcheck invalid-read line=any size=8
}

CASE(bits_set)
{
    read_all();
    u64 ones = ~0ull;
    CHECK(VALGRIND_SET_VBITS(&table.word[1], &ones, 8) == 1);
    BRANCH(direct()); // EXPECT memcheck uninit-branch
}

CASE(mapped_anew)
{
    read_all();
    CHECK(mmap((void *)&table, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == (void *)&table);
    BRANCH(direct());
    u64 *undefined = (u64 *)block(8);
    ((volatile u64 *)&table)[1] = undefined[0];
    BRANCH(direct()); // EXPECT memcheck uninit-branch
    BRANCH(bounded_by_branch(1)); // EXPECT memcheck uninit-branch
}

CASE(gone)
{
    // DIES SIGSEGV
    read_all();
    munmap((void *)&table, PAGE);
    bounded_by_branch(1); // EXPECT memcheck invalid-read line=any size=8
}
