// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[16]: 16
// RUN[9000]: 9000
// RUN[8500_nobody]: 8500 nobody
// RUN[8501_nobody]: 8501 nobody
//
// Filling the table up to its limit with each kind of call, and what a program sees of /proc then;
// also as a user who may not raise the hard limit.
#include "guest.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void fill(const char *how, int (*make)(void))
{
    int fd, previous = -1, last = -1, out_of_order = 0, count = 0;
    while ((fd = make()) >= 0) {
        out_of_order += fd <= previous;
        previous = last = fd;
        count++;
    }
    say("%s: %d, out of order %d, last %d, %s\n", how, count, out_of_order, last,
        error_name(errno));
    close(last);
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char byte = 0;
    say("maps %d %d %zd %d\n", maps, fcntl(maps, F_GETFD), read(maps, &byte, 1),
        (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f'));
    say("write %zd\n", write(maps, "x", 1));
    closefrom(3);
}

static int by_open(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int by_dup(void)
{
    return dup(0);
}

static int by_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int by_pipe(void)
{
    int ends[2];
    return pipe(ends) == 0 ? ends[1] : -1;
}

static int by_socketpair(void)
{
    int ends[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? ends[1] : -1;
}

// While the engine's own descriptors are still where they began.
static void fill_with_pairs(void)
{
    int count = 0;
    while (by_socketpair() >= 0)
        count++;
    say("pairs %d, %s\n", count, error_name(errno));
    closefrom(3);
}

int main(int argc, char **argv)
{
    rlim_t count = argc > 1 ? atoi(argv[1]) : 16;
    struct rlimit limit = {count, count};
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    closefrom(3);
    if (argc > 2 && geteuid() == 0)
        SHOW(setuid(65534));
    if (argc > 2)
        fill_with_pairs();
    fill("open", by_open);
    fill("dup", by_dup);
    fill("socket", by_socket);
    fill("pipe", by_pipe);
    fill("socketpair", by_socketpair);
    getrlimit(RLIMIT_NOFILE, &limit);
    say("limit %d %d\n", limit.rlim_cur == count, limit.rlim_max == count);
    return 0;
}
