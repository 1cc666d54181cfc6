// SPDX-License-Identifier: MIT
//
// Where a writer's text goes: a file by template, a descriptor, a socket. Writes
// are whole or the output is given up, with one line that says so.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/output_file.h"
#include "monitor/report/report_internal.h"

enum {
    DEFAULT_PORT = 1500,
    CONNECT_SECONDS = 10, // the client waits meanwhile
};

static ReportAlarm *alarm_fn;
static void *alarm_data;
static u32 failures;

void report_on_alarm(ReportAlarm *fn, void *data)
{
    alarm_fn = fn;
    alarm_data = data;
}

u32 report_failures(void)
{
    return failures;
}

static void alarm_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void alarm_line(const char *format, ...)
{
    char line[PATH_MAX + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    failures++;
    if (alarm_fn)
        alarm_fn(alarm_data, line);
    else
        fprintf(stderr, "muninn: %s\n", line);
}

static void give_up(Sink *sink, const char *why)
{
    if (!sink->failed)
        alarm_line("cannot write to %s: %s; this output ends here", sink->name, why);
    sink->failed = true;
}

void sink_use_fd(Sink *sink, int fd, const char *name)
{
    struct stat stat;

    if (fcntl(fd, F_GETFD) < 0 && fd != STDERR_FILENO) {
        fprintf(stderr, "muninn: %s: descriptor %d is not open; using standard error\n", name, fd);
        fd = STDERR_FILENO;
    }
    *sink = (Sink){.fd = fd};
    snprintf(sink->name, sizeof(sink->name), "%s", name);
    sink->seekable = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
}

static int open_named(const SinkFile *file, const char *path, bool is_fresh, bool *ret_is_unnamed)
{
    int fd = -1;

    if (file->whole && strlen(path) < sizeof(((Sink *)0)->name))
        fd = output_open_unnamed(path);
    *ret_is_unnamed = fd >= 0;
    if (fd >= 0)
        return fd;
    return output_open(path, O_WRONLY | (file->share ? O_APPEND : 0) | (is_fresh ? O_TRUNC : 0));
}

// Parent and child may share a file of text, by appending. Of any other file a
// fork child needs one of its own, and gets it even if the name has no %p.
bool sink_open_file(Sink *sink, const SinkFile *file, const RunInfo *run)
{
    char path[4096];
    bool has_pid = strstr(file->template, "%p") != NULL;
    int error = options_expand_path(file->template, run->pid, 1, path, sizeof(path));
    bool is_expanded = error == 0;

    if (!error && run->is_fork_child && !has_pid && !file->share && output_is_kept(path)) {
        size_t length = strlen(path);
        if (snprintf(path + length, sizeof(path) - length, ".%d", run->pid) >=
            (int)(sizeof(path) - length))
            error = -ENAMETOOLONG;
    }
    if (!error) {
        bool is_fresh = !run->is_fork_child || has_pid || !file->share;
        bool is_unnamed;
        int fd = open_named(file, path, is_fresh, &is_unnamed);
        if (fd >= 0) {
            sink_use_fd(sink, fd, path);
            sink->owned = true;
            sink->is_unnamed = is_unnamed;
            sink->seekable = sink->seekable && !output_is_borrowed(path);
            return true;
        }
        error = fd;
    }
    alarm_line("Cannot create %s file '%s': %s", file->what,
               is_expanded ? path : file->template, output_error(error));
    return false;
}

// Splits "host:port", "[v6]:port" and "host" into the buffers.
static bool split_address(const char *spec, char *host, size_t host_size, char *port,
                          size_t port_size)
{
    const char *begin = spec, *end, *colon;

    if (*spec == '[') {
        begin++;
        end = strchr(begin, ']');
        if (!end || (end[1] && end[1] != ':'))
            return false;
        colon = end[1] ? end + 1 : NULL;
    } else {
        colon = strchr(spec, ':');
        if (colon && strchr(colon + 1, ':'))
            colon = NULL; // IPv6 without brackets
        end = colon ? colon : spec + strlen(spec);
    }
    size_t length = (size_t)(end - begin);
    if (length == 0 || length >= host_size)
        return false;
    memcpy(host, begin, length);
    host[length] = 0;
    if (!colon)
        return snprintf(port, port_size, "%d", DEFAULT_PORT) > 0;
    char *rest;
    long number = strtol(colon + 1, &rest, 10);
    if (*rest || rest == colon + 1 || number < 1 || number > 65535)
        return false;
    return snprintf(port, port_size, "%ld", number) > 0;
}

static int connect_to(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct timeval patience = {.tv_sec = CONNECT_SECONDS}, forever = {0};
    int fd = -1;

    if (getaddrinfo(host, port, &hints, &found) != 0)
        return -1;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
    }
    freeaddrinfo(found);
    return fd;
}

bool sink_open_socket(Sink *sink, const char *spec, bool is_xml, i32 pid)
{
    char host[256], port[16];
    int fd = -1;

    if (split_address(spec, host, sizeof(host), port, sizeof(port)))
        fd = connect_to(host, port);
    if (fd < 0) {
        fprintf(stderr,
                "==%d== Failed to connect to %slogging server '%s'.\n"
                "==%d== %s will be sent to stderr instead.\n",
                pid, is_xml ? "XML " : "", spec, pid, is_xml ? "XML output" : "Logging messages");
        return false;
    }
    sink_use_fd(sink, fd, spec);
    sink->owned = true;
    return true;
}

// A file that cannot get its name is replaced by one that is made in the usual way.
static bool replace_unnamed(Sink *sink)
{
    int fd = output_open(sink->name, O_WRONLY | O_TRUNC);

    if (fd >= 0) {
        close(sink->fd);
        sink->fd = fd;
    } else {
        give_up(sink, output_error(fd));
    }
    return fd >= 0;
}

// Of the descriptor that made the file /proc says for ever that its file has no name, and
// `muninn view PID` finds a report by what /proc says.
static void open_by_name(Sink *sink)
{
    struct stat ours, named;
    int fd = open(sink->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_it = fd >= 0 && fstat(sink->fd, &ours) == 0 && fstat(fd, &named) == 0 &&
                 ours.st_dev == named.st_dev && ours.st_ino == named.st_ino &&
                 lseek(fd, lseek(sink->fd, 0, SEEK_CUR), SEEK_SET) >= 0;

    if (is_it) {
        close(sink->fd);
        sink->fd = fd;
    } else if (fd >= 0) {
        close(fd);
    }
}

void sink_begin(Sink *sink, const void *data, size_t size)
{
    sink_write(sink, data, size);
    if (!sink->is_unnamed || sink->failed)
        return;
    sink->is_unnamed = false;
    if (output_appear(sink->fd, sink->name) == 0)
        open_by_name(sink);
    else if (replace_unnamed(sink))
        sink_write(sink, data, size);
}

void sink_write(Sink *sink, const void *data, size_t size)
{
    const char *at = data;

    while (size && !sink->failed) {
        ssize_t wrote = write(sink->fd, at, size);
        if (wrote > 0) {
            at += wrote;
            size -= (size_t)wrote;
        } else if (wrote < 0 && errno == EAGAIN) {
            // Somebody made the terminal or pipe non-blocking; wait for room.
            struct pollfd poll_fd = {.fd = sink->fd, .events = POLLOUT};
            poll(&poll_fd, 1, -1);
        } else if (wrote == 0 || errno != EINTR) {
            give_up(sink, wrote == 0 ? "nothing was accepted" : strerror(errno));
        }
    }
}

void sink_write_at(Sink *sink, const void *data, size_t size, u64 offset)
{
    const char *at = data;

    while (size && !sink->failed) {
        ssize_t wrote = pwrite(sink->fd, at, size, (off_t)offset);
        if (wrote > 0) {
            at += wrote;
            size -= (size_t)wrote;
            offset += (u64)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            give_up(sink, wrote == 0 ? "nothing was accepted" : strerror(errno));
        }
    }
}

void sink_close(Sink *sink)
{
    if (sink->owned && close(sink->fd) != 0 && errno != EINTR)
        give_up(sink, strerror(errno));
    sink->fd = -1;
}
