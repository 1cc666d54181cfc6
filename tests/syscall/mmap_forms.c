// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// mmap in every form: hints honoured, MAP_FIXED over old maps, NOREPLACE refusals, MAP_32BIT, huge
// reservations, file maps private and shared, partial unmaps and protections, and errors.
#include "guest.h"
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };
static sigjmp_buf home;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    siglongjmp(home, info->si_code);
}

// 0 when the byte can be read, else the si_code of the fault.
static int probe(volatile char *p)
{
    int code = sigsetjmp(home, 1);
    if (code == 0)
        (void)*p;
    return code;
}

static void placement(void)
{
    char *hint = (char *)0x60000000000;
    char *p = mmap(hint, PAGE, RW, ANONYMOUS, -1, 0);
    say("free hint honoured %d\n", p == hint);
    char *q = mmap(hint, PAGE, RW, ANONYMOUS, -1, 0);
    say("taken hint moved %d\n", q != hint && q != MAP_FAILED);
    *p = 7;
    SHOW(mmap(hint, PAGE, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    say("untouched %d\n", *p);
    say("fixed %d", mmap(hint, PAGE, RW, ANONYMOUS | MAP_FIXED, -1, 0) == hint);
    say(" fresh %d\n", *p);
    char *low = mmap(NULL, 1 << 20, RW, ANONYMOUS | MAP_32BIT, -1, 0);
    say("32-bit %d\n", (uintptr_t)low + (1 << 20) <= 1UL << 32);
    hint = (char *)0x50000000;
    p = mmap(hint, PAGE, RW, ANONYMOUS | MAP_32BIT, -1, 0);
    say("32-bit hint honoured %d\n", p == hint);
    hint = (char *)0x50000000000;
    p = mmap(hint, PAGE, RW, ANONYMOUS | MAP_32BIT, -1, 0);
    say("32-bit hint too high %d\n", p != hint && (uintptr_t)p < 1UL << 32);
    hint = (char *)0x100000000000;
    p = mmap(hint, PAGE, RW, ANONYMOUS, -1, 0);
    say("16 TiB hint honoured %d\n", p == hint);
    q = mmap(hint, PAGE, RW, ANONYMOUS, -1, 0);
    say("taken, moved %d\n", q != hint && q != MAP_FAILED);
    p = mmap((char *)0x60000000123, PAGE, RW, ANONYMOUS, -1, 0);
    say("odd hint aligned %d\n", ((uintptr_t)p & 4095) == 0);
    char *big = mmap(NULL, 1UL << 40, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    say("1 TiB %d\n", big != MAP_FAILED);
    char *middle = big + (1UL << 39);
    say("committed %d\n", mprotect(middle, 16 * PAGE, RW));
    memset(middle, 1, 16 * PAGE);
    say("touched %d, beside %d\n", middle[65535], probe(middle - 1));
    SHOW(munmap(big, 1UL << 40));
    say("gone %d\n", probe(middle));
    char *noreserve = mmap(NULL, 1UL << 38, RW, ANONYMOUS | MAP_NORESERVE, -1, 0);
    noreserve[1UL << 37] = 3;
    say("256 GiB, one touched %d\n", noreserve[1UL << 37]);
    munmap(noreserve, 1UL << 38);
}

static void pieces(void)
{
    char *p = mmap(NULL, 10 * PAGE, RW, ANONYMOUS, -1, 0);
    memset(p, 5, 10 * PAGE);
    munmap(p + 2 * PAGE, PAGE);
    munmap(p + 5 * PAGE, 2 * PAGE);
    mprotect(p + 8 * PAGE, PAGE, PROT_NONE);
    for (int i = 0; i < 10; i++)
        say("%d ", probe(p + i * PAGE));
    SHOW(mprotect(p, 4 * PAGE, PROT_READ)); // across a hole
    SHOW(munmap(p, 10 * PAGE));             // across holes: fine
    SHOW(munmap(p, 10 * PAGE));             // nothing there: fine
    SHOW(munmap(p + 1, PAGE));
    SHOW(munmap(p, 0));
    SHOW(mprotect(p, PAGE, PROT_READ));
    SHOW(mprotect(p, PAGE, 0x777));
    char *low = (char *)0x64000000000;
    char *grows = mmap(low, PAGE, RW, ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    grows[0] = 1;
    say("grows down %d", grows == low);
    say(" next page %d", probe(grows - 1));
    say(" and next %d\n", probe(grows - PAGE - 1));
}

static void files(void)
{
    int fd = memfd_create("file", 0);
    CHECK(ftruncate(fd, 3 * PAGE) == 0);
    char *shared = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, PAGE);
    shared[PAGE] = 11;
    say("private sees %d", private[0]);
    private[0] = 12;
    shared[PAGE] = 13;
    say(" then keeps %d, beyond the end %d\n", private[0], probe(shared + 3 * PAGE));
    char byte = 0;
    CHECK(pread(fd, &byte, 1, PAGE) == 1);
    say("file has %d, msync %d\n", byte, msync(shared, PAGE, MS_SYNC));
    int null = open("/dev/null", O_RDONLY), read_only = open("/proc/self/exe", O_RDONLY);
    SHOW(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0));
    SHOW(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, null, 0));
    SHOW(mmap(NULL, PAGE, RW, MAP_SHARED, read_only, 0));
    SHOW(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 123));
    SHOW(mmap(NULL, 0, PROT_READ, ANONYMOUS, -1, 0));
    SHOW(mmap(NULL, PAGE, PROT_READ, 0, fd, 0));
    SHOW(mmap((void *)123, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
    SHOW(mmap((void *)(1UL << 60), PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0));
    SHOW(mmap(NULL, 1UL << 62, PROT_READ, ANONYMOUS, -1, 0));
    unsigned char residency[4];
    SHOW(mincore(shared, 3 * PAGE, residency));
    SHOW(mincore((void *)0x60000800000, PAGE, residency));
    SHOW(madvise(shared, PAGE, MADV_WILLNEED));
    SHOW(madvise(shared, PAGE, 12345));
    SHOW(mlock(shared, PAGE));
}

int main(void)
{
    on_signal(SIGSEGV, on_fault, 0);
    on_signal(SIGBUS, on_fault, 0);
    placement();
    pieces();
    files();
    return 0;
}
