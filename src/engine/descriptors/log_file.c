// SPDX-License-Identifier: MIT
//
// Where the engine's lines go: a hidden descriptor of the file or descriptor that
// the user named, so that a client which closes its standard error, as all of
// coreutils do before they exit, does not silence us.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/descriptors/descriptors_internal.h"

#define PATH_BYTES 4096

// Absolute, for the client may change its directory before it forks. "" without --log-file.
static char log_template[2 * PATH_BYTES];
static u32 forks; // %n
static DescriptorMoved *use_log; // tells the log its number
static int log_number = -1;      // hidden, -1 when we have to do without
static bool is_open;             // there is a log, with or without a number
static int visible = -1;         // --log-fd: the client's descriptor of the same file
static struct stat visible_file;

static bool complain(const char *subject, const char *why)
{
    char line[PATH_BYTES + 256];
    size_t len = text_format(line, sizeof(line), "muninn: %s: %s\n", subject, why);

    raw_syscall3(SYS_write, 2, (u64)line, len);
    return false;
}

// The directory, with its percent signs doubled, and a slash.
static size_t put_directory(char *dst, size_t max)
{
    char cwd[PATH_BYTES];
    size_t len = 0;

    if (raw_syscall2(SYS_getcwd, (u64)cwd, sizeof(cwd)) <= 0 || cwd[0] != '/')
        return 0;
    for (const char *p = cwd; *p && len + 3 < max; p++) {
        if (*p == '%')
            dst[len++] = '%';
        dst[len++] = *p;
    }
    dst[len++] = '/';
    return len;
}

static bool keep_template(const char *template)
{
    size_t len = template[0] == '/' ? 0 : put_directory(log_template, sizeof(log_template));
    size_t rest = strlen(template);

    if (len + rest >= sizeof(log_template))
        return complain(template, "the name of the log is too long");
    memcpy(log_template + len, template, rest + 1);
    return true;
}

// A descriptor of the log of this process, or -errno. `truncate` is O_TRUNC or 0.
static i64 open_log_file(u64 truncate)
{
    char path[PATH_BYTES];
    i32 pid = (i32)raw_syscall0(SYS_getpid);
    int error = options_expand_path(log_template, pid, forks, path, sizeof(path));

    if (error)
        return error;
    // Appending: a child that keeps its parent's log must not overwrite it.
    return output_open(path, O_WRONLY | O_APPEND | (int)truncate);
}

// Whether the client's descriptor still is what it was when we were told to use it.
static bool visible_is_same(void)
{
    struct stat now;

    return visible >= 0 && raw_syscall2(SYS_fstat, (u64)visible, (u64)&now) == 0 &&
           now.st_dev == visible_file.st_dev && now.st_ino == visible_file.st_ino;
}

static void log_moved(int fd)
{
    log_number = fd;
    use_log(fd >= 0 || !visible_is_same() ? fd : visible);
}

static bool hide_log(int fd, const char *subject)
{
    is_open = descriptor_hide(fd, log_moved) >= 0;
    return is_open || complain(subject, "there is no descriptor left for the log");
}

// ------------------------------------------------- with every number in use

bool log_takes_over(int fd)
{
    if (LIKELY(log_number >= 0 || !is_open || fd != visible))
        return false;
    if (!registry_may_change() || !visible_is_same())
        return false;
    visible = -1; // what the client opens next at this number is another file
    raw_syscall3(SYS_fcntl, (u64)fd, F_SETFD, FD_CLOEXEC);
    return registry_adopt(fd, log_moved);
}

void log_regain(void)
{
    if (LIKELY(log_number >= 0 || !is_open) || !registry_may_change())
        return;
    if (visible_is_same()) {
        descriptor_hide(visible, log_moved);
    } else if (log_template[0]) {
        i64 fd = open_log_file(0);
        if (fd >= 0)
            descriptor_hide((int)fd, log_moved);
        raw_syscall1(SYS_close, (u64)fd);
    }
}

// --------------------------------------------------------- start and children

// True for a descriptor that the engine before the last execve has left for us.
static bool adopt_inherited(int fd)
{
    if (fd < HIDDEN_START || raw_syscall3(SYS_fcntl, (u64)fd, F_SETFD, FD_CLOEXEC) != 0)
        return false;
    is_open = registry_adopt(fd, log_moved);
    return is_open;
}

bool descriptors_open_log(const Options *options, DescriptorMoved *use)
{
    char subject[32];

    use_log = use;
    if (options->log_file && !keep_template(options->log_file))
        return false;
    if (adopt_inherited(options->log_fd))
        return true;
    if (!options->log_file && options->log_fd < 0) { // as the user wished, no messages
        log_moved(-1);
        return true;
    }
    if (options->log_file) {
        i64 fd = open_log_file(O_TRUNC);
        if (fd < 0)
            return complain(options->log_file, output_error((int)fd));
        bool ok = hide_log((int)fd, options->log_file);
        raw_syscall1(SYS_close, (u64)fd);
        return ok;
    }
    text_format(subject, sizeof(subject), "--log-fd=%d", options->log_fd);
    if (raw_syscall2(SYS_fstat, (u64)options->log_fd, (u64)&visible_file) == 0) {
        visible = options->log_fd;
        return hide_log(visible, subject);
    }
    if (options->log_fd != 2)
        return complain(subject, "this descriptor is not open");
    log_moved(-1); // started without standard error: as the user wished, no messages
    return true;
}

// True when each process has a log of its own.
static bool is_per_process(void)
{
    return strstr(log_template, "%p") || strstr(log_template, "%n");
}

void descriptors_fork_child(void)
{
    registry_after_fork();
    forks++;
    if (log_number < 0 || !is_per_process())
        return;
    i64 fd = open_log_file(O_TRUNC);
    if (fd < 0)
        return; // the parent's log takes the child's lines too
    raw_syscall3(SYS_dup3, (u64)fd, (u64)log_number, O_CLOEXEC);
    raw_syscall1(SYS_close, (u64)fd);
}

int descriptors_log_across_exec(bool is_other_process)
{
    if (is_other_process && is_per_process())
        return -1;
    if (log_number >= 0)
        raw_syscall3(SYS_fcntl, (u64)log_number, F_SETFD, 0);
    return log_number;
}

void descriptors_after_failed_exec(void)
{
    if (log_number >= 0)
        raw_syscall3(SYS_fcntl, (u64)log_number, F_SETFD, FD_CLOEXEC);
}
