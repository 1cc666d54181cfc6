// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// BUILD[nonpie]: -O2 -no-pie -fno-pie
//
// brk and sbrk: growth, zeroed pages, shrinking and growing again, refusal without change, the data
// limit, and a heap that does not run into other maps.
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int main(void)
{
    char *start = (char *)syscall(SYS_brk, 0);
    say("sbrk agrees %d\n", sbrk(0) == start);
    say("grow %d\n", (char *)syscall(SYS_brk, start + (1 << 20)) == start + (1 << 20));
    int nonzero = 0;
    for (int i = 0; i < 1 << 20; i += 4096)
        nonzero += start[i] != 0 || start[i + 4095] != 0;
    say("nonzero %d\n", nonzero);
    memset(start, 0x77, 1 << 20);
    say("shrink %d\n", (char *)syscall(SYS_brk, start + 4096) == start + 4096);
    say("grow again %d\n", (char *)syscall(SYS_brk, start + (1 << 20)) == start + (1 << 20));
    say("kept %x, fresh %x\n", start[4095], start[8192]);
    say("odd size %d\n", (char *)syscall(SYS_brk, start + 12345) == start + 12345);
    say("below the start changes nothing %d\n", (char *)syscall(SYS_brk, start - (1 << 30)) ==
                                                    start + 12345);
    say("absurd changes nothing %d\n", (char *)syscall(SYS_brk, -1L) == start + 12345);
    CHECK(brk(start + 12345) == 0); // now libc knows too
    say("sbrk negative %d\n", sbrk(-345) == start + 12345);
    errno = 0;
    say("sbrk absurd %d %s\n", sbrk(1L << 46) == (void *)-1, error_name(errno));

    struct rlimit limit = {1 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &limit);
    say("beyond the limit %d\n", (char *)syscall(SYS_brk, start + (4 << 20)) != start + (4 << 20));
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_DATA, &limit);
    char *big = start + (64 << 20);
    say("64 MiB %d\n", brk(big));
    big[-1] = 9;
    char *blocks[200];
    for (int i = 0; i < 200; i++)
        memset(blocks[i] = malloc(1000 * (i + 1)), i, 1000 * (i + 1));
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        wrong += blocks[i][999] != (char)i;
        free(blocks[i]);
    }
    say("malloc beside it, wrong %d\n", wrong);
    return 0;
}
