// SPDX-License-Identifier: MIT
// BUILD: -O2
// LIMIT: as=150000000:unlimited data=100000000:unlimited
//
// Started under limits that are smaller than what the engine reserves for itself, but may be raised.
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit space, data;

    CHECK(getrlimit(RLIMIT_AS, &space) == 0 && getrlimit(RLIMIT_DATA, &data) == 0);
    say("%ld %ld %ld\n", (long)space.rlim_cur, (long)space.rlim_max, (long)data.rlim_cur);
    for (int mb = 20; mb <= 160; mb += 35) {
        void *memory = mmap(NULL, (size_t)mb << 20, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        say("%d: %s\n", mb, memory == MAP_FAILED ? error_name(errno) : "works");
        if (memory != MAP_FAILED)
            munmap(memory, (size_t)mb << 20);
    }
    return 0;
}
