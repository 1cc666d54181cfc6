// SPDX-License-Identifier: MIT
// BUILD: -O2
// LIMIT: as=150000000:150000000 data=140000000:140000000
//
// Started under limits that are smaller than what the engine would reserve, and which it may not raise: it takes
// less, and the program keeps most of its share.
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit space, data;

    CHECK(getrlimit(RLIMIT_AS, &space) == 0 && getrlimit(RLIMIT_DATA, &data) == 0);
    say("%ld %ld %ld\n", (long)space.rlim_cur, (long)space.rlim_max, (long)data.rlim_cur);
    for (int mb = 20; mb <= 160; mb += mb < 80 ? 30 : 80) {
        void *memory = mmap(NULL, (size_t)mb << 20, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        say("%d: %s\n", mb, memory == MAP_FAILED ? error_name(errno) : "works");
        if (memory != MAP_FAILED)
            munmap(memory, (size_t)mb << 20);
    }
    return 0;
}
