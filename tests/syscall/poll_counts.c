// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// poll and ppoll with more entries than there may be descriptors, of which nearly all lie where
// nothing is: refused before anybody looks at one. A hundred times, for a look at each takes long.
#include "guest.h"
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

int main(void)
{
    static const unsigned counts[] = {1u << 22, 0x7fffffff, 0x80000000u, ~0u};
    struct timespec now = {0, 0};
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    struct pollfd *last = (struct pollfd *)(void *)(pages + 4096) - 1;
    last->fd = -1;
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int k = 0; k < 25; k++)
            CHECK(syscall(SYS_poll, last, counts[i], 0) == -1);
        say("poll of %x: %s\n", counts[i], error_name(errno));
        CHECK(syscall(SYS_ppoll, last, counts[i], &now, NULL, 8) == -1);
        say("ppoll of %x: %s\n", counts[i], error_name(errno));
    }
    return 0;
}
