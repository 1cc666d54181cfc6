// SPDX-License-Identifier: MIT
// BUILD: -O2
// LIMIT: nofile=16
//
// Under a limit of sixteen descriptors the client has all sixteen.
#include "guest.h"
#include <fcntl.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    say("limit %lu %lu\n", (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    int fd, last = -1, opened = 0;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) {
        last = fd;
        opened++;
    }
    say("opened %d, last %d, then %s\n", opened, last, error_name(errno));
    SHOW(dup2(0, 16));
    SHOW(fcntl(0, F_DUPFD, 15));
    int ends[2];
    SHOW(pipe(ends));
    close(9);
    SHOW(dup(0));
    limit.rlim_cur = 8;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(open("/dev/null", O_RDONLY));
    say("still runs: fd 15 is %s\n", fcntl(15, F_GETFD) >= 0 ? "open" : "closed");
    return 0;
}
