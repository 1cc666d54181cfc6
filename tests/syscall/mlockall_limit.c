// SPDX-License-Identifier: MIT
// BUILD: -O1
//
// An ordinary user may lock so much memory, and the room into which a stack has not grown yet is not
// counted.
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int main(void)
{
    struct rlimit limit = {7 << 20, 7 << 20};

    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    // Of this thread alone, whose privileges decide.
    if (geteuid() == 0)
        CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
    SHOW(mlockall(MCL_CURRENT));
    SHOW(mlockall(MCL_CURRENT | MCL_ONFAULT));
    char *more = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(more != MAP_FAILED);
    SHOW(mlockall(MCL_CURRENT));
    return 0;
}
