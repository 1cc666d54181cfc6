// SPDX-License-Identifier: MIT
//
// Files of our own under a limit on the size of files. Each case runs in a child, which SIGXFSZ
// would kill.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own_file.h"
#include "unit.h"

#define LIMIT 100
static const char text[5000];

static bool holds_in_child(bool (*body)(int fd, rlim_t hard), rlim_t hard)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct rlimit limit = { LIMIT, hard };
        int fd = memfd_create("test", 0);
        _exit(fd >= 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0 && body(fd, hard) ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

static off_t size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_size : -1;
}

// The limit and the mask are what they were, and no signal waits.
static bool nothing_is_left_behind(rlim_t hard)
{
    struct rlimit limit;
    sigset_t mask, pending;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == LIMIT &&
           limit.rlim_max == hard && sigprocmask(SIG_BLOCK, NULL, &mask) == 0 &&
           !sigismember(&mask, SIGXFSZ) && sigpending(&pending) == 0 &&
           !sigismember(&pending, SIGXFSZ);
}

static bool writes_all(int fd, rlim_t hard)
{
    return own_file_write(fd, text, sizeof(text)) && size_of(fd) == sizeof(text) &&
           nothing_is_left_behind(hard);
}

TEST(a_soft_limit_does_not_cut_what_is_written)
{
    CHECK(holds_in_child(writes_all, RLIM_INFINITY));
}

static bool resizes(int fd, rlim_t hard)
{
    return own_file_resize(fd, 1 << 20) == 0 && size_of(fd) == 1 << 20 &&
           nothing_is_left_behind(hard);
}

TEST(a_soft_limit_does_not_hinder_a_resize)
{
    CHECK(holds_in_child(resizes, RLIM_INFINITY));
}

// Whoever may raise a hard limit writes all; the others are told. Neither gets a signal.
static bool survives_hard_limit(int fd, rlim_t hard)
{
    bool wrote = own_file_write(fd, text, sizeof(text));
    bool write_is_right = size_of(fd) == (wrote ? (off_t)sizeof(text) : LIMIT);
    i64 resized = own_file_resize(fd, 1 << 20);

    return write_is_right && (resized == 0 || (resized == -EFBIG && !wrote)) &&
           nothing_is_left_behind(hard);
}

TEST(a_hard_limit_brings_an_error_and_no_signal)
{
    CHECK(holds_in_child(survives_hard_limit, LIMIT));
}

TEST(what_is_within_the_limit_is_plainly_written)
{
    int fd = memfd_create("test", 0);

    CHECK(own_file_write(fd, text, 10) && own_file_write(fd, NULL, 0) && size_of(fd) == 10);
    CHECK(own_file_resize(fd, 3) == 0 && size_of(fd) == 3);
    CHECK(!own_file_write(-1, text, 10) && own_file_resize(-1, 1) == -EBADF);
    close(fd);
}
