// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[soft]: soft
// RUN[hard]: hard
// MUNINN: --trace=syscalls --log-file=limit_file_size.log
// MUNINN: --tool=none
//
// A limit on the size of files does not reach the engine's own: a long log brings no SIGXFSZ, and
// the text behind /proc/self/maps is whole where the hard limit allows it. The program's own files
// stay limited.
#include "guest.h"
#include <fcntl.h>
#include <sys/resource.h>

static void on_xfsz(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    say("signal %d\n", sig);
}

int main(int argc, char **argv)
{
    char text[4096] = {0};
    bool hard = argc > 1 && argv[1][0] == 'h';
    struct rlimit limit = {100, hard ? 100 : RLIM_INFINITY};

    on_signal(SIGXFSZ, on_xfsz, 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    if (!hard) {
        int fd = open("/proc/self/maps", O_RDONLY);
        CHECK(fd >= 0);
        say("maps %d\n", read(fd, text, sizeof text) > 100);
    }
    int fd = open("limit_file_size.out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    SHOW(write(fd, text, sizeof text));
    SHOW(write(fd, text, sizeof text));
    unlink("limit_file_size.out");
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    say("%ld\n", (long)limit.rlim_cur);
    return 0;
}
