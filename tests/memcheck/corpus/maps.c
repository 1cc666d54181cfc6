// SPDX-License-Identifier: MIT
//
// Memory that is not the heap's: globals, thread-local data, mappings, the break, files.
// BUILD -mavx
#include "corpus.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096 };

static u8 zeroed[64], filled[64] = {1, 2, 3};
static __thread u8 local_zeroed[64], local_filled[64] = {1, 2, 3};

CASE(globals_are_defined)
{
    for (int i = 0; i < 64; i++) {
        BRANCH(((volatile u8 *)zeroed)[i]);
        BRANCH(((volatile u8 *)filled)[i]);
    }
}

CASE(global_made_undefined_by_a_copy)
{
    u8 *p = block(8);
    memcpy(zeroed, p, 8);
    BRANCH(((volatile u8 *)zeroed)[8]);
    BRANCH(((volatile u8 *)zeroed)[7]); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(thread_local_is_defined)
{
    for (int i = 0; i < 64; i++) {
        BRANCH(((volatile u8 *)local_zeroed)[i]);
        BRANCH(((volatile u8 *)local_filled)[i]);
    }
}

CASE(thread_local_made_undefined_by_a_copy)
{
    u8 *p = block(8);
    memcpy(local_zeroed, p, 8);
    BRANCH(((volatile u8 *)local_zeroed)[0]); // EXPECT memcheck uninit-branch origin=heap:-2
}

static NOINLINE u8 *map(size_t size, int protection)
{
    void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    HIDE(p);
    return (u8 *)p;
}

CASE(anonymous_is_zero)
{
    u8 *p = map(3 * PAGE, PROT_READ | PROT_WRITE);
    BRANCH(p[0]);
    BRANCH(p[3 * PAGE - 1]);
    WRITE32(p + PAGE - 16);
    READ32(p + 2 * PAGE - 5);
    munmap(p, 3 * PAGE);
}

CASE(read_unmapped)
{
    // DIES SIGSEGV
    u8 *p = map(PAGE, PROT_READ | PROT_WRITE);
    p[0] = 1;
    munmap(p, PAGE);
    READ4(p); // EXPECT memcheck invalid-read size=4 where=unknown
}

CASE(write_unmapped)
{
    // DIES SIGSEGV
    u8 *p = map(PAGE, PROT_READ | PROT_WRITE);
    p[0] = 1;
    munmap(p, PAGE);
    WRITE8(p + 100); // EXPECT memcheck invalid-write size=8 where=unknown
}

CASE(write_null)
{
    // DIES SIGSEGV
    int *p = NULL;
    HIDE(p);
    *(volatile int *)p = 1; // EXPECT memcheck invalid-write size=4 where=unknown
}

CASE(read_near_null)
{
    // DIES SIGSEGV
    u8 *p = (u8 *)0x48;
    HIDE(p);
    READ8(p); // EXPECT memcheck invalid-read size=8 where=unknown
}

CASE(read_guard_page)
{
    // DIES SIGSEGV
    u8 *p = map(2 * PAGE, PROT_READ | PROT_WRITE);
    CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
    READ1(p + PAGE - 1);
    READ1(p + PAGE); // EXPECT-MUNINN memcheck invalid-read size=1 why=protection
}

CASE(write_read_only)
{
    // DIES SIGSEGV
    u8 *p = map(PAGE, PROT_READ);
    READ1(p);
    WRITE1(p); // MAYBE-MUNINN memcheck invalid-write size=1 why=protection
}

CASE(write_constant)
{
    // DIES SIGSEGV
    static const u8 constant[16] = {1};
    const u8 *p = constant;
    HIDE(p);
    WRITE1(p); // MAYBE-MUNINN memcheck invalid-write size=1 why=protection
}

CASE(protected_and_given_back)
{
    u8 *p = map(2 * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 7, 2 * PAGE);
    CHECK(mprotect(p, PAGE, PROT_NONE) == 0);
    CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
    BRANCH(p[5]);
    WRITE8(p + PAGE - 4);
    munmap(p, 2 * PAGE);
}

CASE(remapped_elsewhere)
{
    u8 *p = map(2 * PAGE, PROT_READ | PROT_WRITE), *other = block(16);
    p[10] = 9;
    memcpy(p + 20, other, 4);
    u8 *q = (u8 *)mremap(p, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    HIDE(q);
    BRANCH(q[10]);
    BRANCH(q[63 * PAGE]);
    BRANCH(q[20]); // EXPECT memcheck uninit-branch
}

CASE(mapped_over)
{
    u8 *p = map(2 * PAGE, PROT_READ | PROT_WRITE), *other = block(16);
    memcpy(p, other, 16);
    void *q = mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(q == p);
    HIDE(q);
    BRANCH(*(u8 *)q);
    free(other);
}

CASE(file_mapping_is_defined)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    u8 *p = (u8 *)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    HIDE(p);
    CHECK(p[1] == 'E');
    close(fd);
    BRANCH(p[PAGE - 1]);
}

CASE(shared_memory)
{
    int fd = memfd_create("corpus", 0);
    CHECK(ftruncate(fd, PAGE) == 0);
    u8 *p = (u8 *)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    HIDE(p);
    p[3] = 3;
    u8 c = 0;
    CHECK(pread(fd, &c, 1, 3) == 1 && c == 3);
    munmap(p, PAGE);
    close(fd);
}

CASE(break_grows_zeroed)
{
    u8 *p = (u8 *)sbrk(3 * PAGE);
    CHECK(p != (void *)-1);
    HIDE(p);
    BRANCH(p[0]); // EXPECT-VALGRIND memcheck uninit-branch why=break
    BRANCH(p[3 * PAGE - 1]); // EXPECT-VALGRIND memcheck uninit-branch why=break
    WRITE32(p + 100);
}

CASE(break_given_back)
{
    // NOT-VALGRIND break
    // DIES SIGSEGV
    u8 *p = (u8 *)sbrk(4 * PAGE);
    CHECK(p != (void *)-1);
    p[3 * PAGE] = 1;
    sbrk(-4 * PAGE);
    HIDE(p);
    WRITE4(p + 2 * PAGE); // EXPECT memcheck invalid-write size=4
}

CASE(array_in_bss_overrun_is_not_seen)
{
    u8 *p = zeroed;
    HIDE(p);
    READ1(p + 64);
}

CASE(vsyscall_page_of_time)
{
    struct { long s, n; } now = {0, 0};
    extern int clock_gettime(int, void *);
    CHECK(clock_gettime(0, &now) == 0);
    BRANCH(now.s);
    BRANCH(now.n);
}

CASE(far_jump_over_null_function)
{
    // DIES SIGSEGV
    void (*f)(void) = NULL;
    HIDE(f);
    f();
    // EXPECT-VALGRIND memcheck invalid-jump where=unknown line=any why=jump-stacks
    // EXPECT-MUNINN memcheck invalid-jump where=unknown why=jump-stacks
}

CASE(jump_to_unmapped)
{
    // DIES SIGSEGV
    u8 *p = map(PAGE, PROT_READ | PROT_WRITE);
    munmap(p, PAGE);
    void (*f)(void) = (void (*)(void))p;
    f();
    // EXPECT-VALGRIND memcheck invalid-jump line=any why=jump-stacks
    // EXPECT-MUNINN memcheck invalid-jump why=jump-stacks
}

CASE(jump_to_data)
{
    // DIES SIGSEGV
    u8 *p = map(PAGE, PROT_READ | PROT_WRITE);
    p[0] = 0xc3;
    void (*f)(void) = (void (*)(void))p;
    f(); // MAYBE memcheck invalid-jump
}

CASE(jump_into_freed_block)
{
    // NOT-VALGRIND protection
    // DIES SIGSEGV
    void (*f)(void) = (void (*)(void))freed_block(64);
    f(); // MAYBE memcheck invalid-jump
}

CASE(generated_code)
{
    u8 *p = map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    static const u8 code[] = {0xb8, 5, 0, 0, 0, 0xc3};
    memcpy(p, code, sizeof code);
    CHECK(((int (*)(void))p)() == 5);
    p[1] = 6;
    CHECK(((int (*)(void))p)() == 6);
}
