// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// mremap: growing in place and by moving, shrinking, onto a fixed address, leaving the old one
// mapped, duplicating a shared map, and its refusals; contents follow.
#include "guest.h"
#include <setjmp.h>
#include <sys/mman.h>

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };
static sigjmp_buf home;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    siglongjmp(home, info->si_code);
}

static int probe(volatile char *p)
{
    int code = sigsetjmp(home, 1);
    if (code == 0)
        (void)*p;
    return code;
}

static char *filled(char *where, int pages)
{
    char *p = mmap(where, pages * PAGE, RW, ANONYMOUS, -1, 0);
    for (int i = 0; i < pages; i++)
        memset(p + i * PAGE, 'a' + i, PAGE);
    return p;
}

int main(void)
{
    on_signal(SIGSEGV, on_fault, 0);
    char *base = (char *)0x61000000000;
    char *p = filled(base, 4);
    say("in place %d", mremap(p, 4 * PAGE, 8 * PAGE, 0) == p);
    say(" kept %c, new %d\n", p[3 * PAGE], p[7 * PAGE]);
    say("shrunk %d", mremap(p, 8 * PAGE, 2 * PAGE, 0) == p);
    say(" tail %d\n", probe(p + 2 * PAGE));

    char *wall = filled(base + 2 * PAGE, 1);
    CHECK(wall == base + 2 * PAGE);
    SHOW(mremap(p, 2 * PAGE, 4 * PAGE, 0));
    char *moved = mremap(p, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
    say("moved %d: %c%c, old gone %d\n", moved != p, moved[0], moved[PAGE], probe(p));

    char *target = base + (1 << 20);
    char *fixed = mremap(moved, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    say("fixed %d: %c%c\n", fixed == target, fixed[0], fixed[PAGE]);
    filled(target + 8 * PAGE, 4);
    fixed = mremap(fixed, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + 9 * PAGE);
    say("over another: %c%c%c%c\n", target[8 * PAGE], target[9 * PAGE], target[10 * PAGE],
        target[11 * PAGE]);

    p = filled(NULL, 2);
    char *left = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    say("dontunmap: new %c, old readable %d and zero %d\n", left[PAGE], probe(p), p[PAGE] == 0);
    char *shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *twin = mremap(shared, 0, PAGE, MREMAP_MAYMOVE);
    *twin = 55;
    say("duplicate %d, shares %d\n", twin != shared && twin != MAP_FAILED, *shared);

    // Growth as realloc does it, with contents checked each time.
    size_t size = 1 << 20;
    char *growing = mmap(NULL, size, RW, ANONYMOUS, -1, 0);
    int wrong = 0;
    for (int i = 0; i < 8; i++) {
        growing[size - 1] = (char)i;
        growing = mremap(growing, size, size * 2, MREMAP_MAYMOVE);
        wrong += growing == MAP_FAILED || growing[size - 1] != (char)i;
        size *= 2;
    }
    say("grown to %zu MiB, wrong %d\n", size >> 20, wrong);
    SHOW(mremap((void *)0x62000000000, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    SHOW(mremap(left + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    SHOW(mremap(left, PAGE, 0, MREMAP_MAYMOVE));
    SHOW(mremap(left, PAGE, PAGE, 0x700));
    SHOW(mremap(left, PAGE, PAGE, MREMAP_FIXED, target));
    SHOW(mremap(left, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, left + PAGE));
    return 0;
}
