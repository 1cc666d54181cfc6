// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// With the limit at its highest the client may use every number, the last included; the descriptors
// of the engine are not in its way and are not seen. (fs.nr_open is 2^20 where it was not raised.)
#include "guest.h"
#include <fcntl.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max > 1 << 20)
        limit.rlim_max = 1 << 20;
    limit.rlim_cur = limit.rlim_max;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    int max = (int)limit.rlim_max;
    say("sysconf %d\n", sysconf(_SC_OPEN_MAX) == max);
    say("dup2 to the last %d\n", dup2(1, max - 1) == max - 1);
    SHOW(dup2(1, max));
    say("dup2 %d %d\n", dup2(1, max / 2) == max / 2, dup2(1, 1023));
    say("dupfd %d\n", fcntl(1, F_DUPFD, max - 5) == max - 5);
    SHOW(open("/dev/null", O_RDONLY));
    int open_count = 0;
    for (int fd = 0; fd < max; fd++)
        open_count += fcntl(fd, F_GETFD) >= 0;
    say("open %d\n", open_count);
    CHECK(write(max - 1, "through the highest\n", 20) == 20);
    return 0;
}
