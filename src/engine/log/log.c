// SPDX-License-Identifier: MIT
//
// Lines to the user; see log.h.
#include "engine/log/log.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/own_file.h"
#include "base/raw_syscall.h"
#include "base/text.h"

enum { STANDARD_ERROR = 2 };

static int fd = STANDARD_ERROR;
static struct stat first_error_file; // st_ino is 0: there was none

static bool look_at(int number, struct stat *ret_file)
{
    return number >= 0 && raw_syscall2(SYS_fstat, (u64)number, (u64)ret_file) == 0;
}

void log_init(int log_to)
{
    static bool was_called;

    fd = log_to;
    if (!was_called && !look_at(STANDARD_ERROR, &first_error_file))
        first_error_file.st_ino = 0;
    was_called = true;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev;
}

// The client may have put a file of its own there.
static bool has_standard_error_besides(void)
{
    struct stat file;

    if (first_error_file.st_ino == 0 || (look_at(fd, &file) && is_same(&file, &first_error_file)))
        return false;
    return look_at(STANDARD_ERROR, &file) && is_same(&file, &first_error_file);
}

int log_fd(void)
{
    return fd;
}

static void write_line(int to, const char *prefix, const char *format, va_list arguments)
{
    char line[1024];
    size_t n = text_format(line, sizeof(line) - 1, "%s", prefix);
    n += text_format_list(line + n, sizeof(line) - 1 - n, format, arguments);
    n = min_u64(n, sizeof(line) - 2);
    line[n++] = '\n';
    own_file_write(to, line, n);
}

void log_line_list(const char *format, va_list arguments)
{
    write_line(fd, "", format, arguments);
}

void log_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(fd, "", format, arguments);
    va_end(arguments);
}

void log_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(fd, "muninn: ", format, arguments);
    va_end(arguments);
}

// What fails may be a pipe that nobody reads any more, and the client shall not die of our line.
static bool block_broken_pipe(u64 *ret_mask)
{
    const u64 pipe = 1ull << (SIGPIPE - 1);
    u64 pending = 0;

    raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, (u64)&pipe, (u64)ret_mask, sizeof(*ret_mask));
    raw_syscall2(SYS_rt_sigpending, (u64)&pending, sizeof(pending));
    return pending & pipe;
}

static void unblock_broken_pipe(u64 mask, bool was_pending)
{
    const u64 pipe = 1ull << (SIGPIPE - 1);
    const struct timespec at_once = { 0, 0 };

    if (!was_pending)
        raw_syscall4(SYS_rt_sigtimedwait, (u64)&pipe, 0, (u64)&at_once, sizeof(pipe));
    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (u64)&mask, 0, sizeof(mask));
}

void log_alarm(const char *format, ...)
{
    va_list arguments;
    u64 mask;
    bool was_pending = block_broken_pipe(&mask);

    va_start(arguments, format);
    write_line(fd, "muninn: ", format, arguments);
    va_end(arguments);
    if (has_standard_error_besides()) {
        va_start(arguments, format);
        write_line(STANDARD_ERROR, "muninn: ", format, arguments);
        va_end(arguments);
    }
    unblock_broken_pipe(mask, was_pending);
}

_Noreturn void log_refuse(const char *format, ...)
{
    enum { CANNOT_RUN = 126 };
    va_list arguments;
    va_start(arguments, format);
    write_line(fd, "muninn: ", format, arguments);
    va_end(arguments);
    raw_syscall1(SYS_exit_group, CANNOT_RUN);
    __builtin_unreachable();
}
