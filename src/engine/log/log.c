// SPDX-License-Identifier: MIT
//
// Lines to the user; see log.h.
#include "engine/log/log.h"

#include "base/own_file.h"
#include "base/raw_syscall.h"
#include "base/text.h"

static int fd = 2;

void log_init(int log_to)
{
    fd = log_to;
}

int log_fd(void)
{
    return fd;
}

static void write_line(const char *prefix, const char *format, va_list arguments)
{
    char line[1024];
    size_t n = text_format(line, sizeof(line) - 1, "%s", prefix);
    n += text_format_list(line + n, sizeof(line) - 1 - n, format, arguments);
    n = min_u64(n, sizeof(line) - 2);
    line[n++] = '\n';
    own_file_write(fd, line, n);
}

void log_line_list(const char *format, va_list arguments)
{
    write_line("", format, arguments);
}

void log_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line("", format, arguments);
    va_end(arguments);
}

void log_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line("muninn: ", format, arguments);
    va_end(arguments);
}

_Noreturn void log_refuse(const char *format, ...)
{
    enum { CANNOT_RUN = 126 };
    va_list arguments;
    va_start(arguments, format);
    write_line("muninn: ", format, arguments);
    va_end(arguments);
    raw_syscall1(SYS_exit_group, CANNOT_RUN);
    __builtin_unreachable();
}
