// SPDX-License-Identifier: MIT
//
// Which paths lead to something of this process in /proc. Paths are taken apart as
// text: `.` and repeated slashes are understood, `..` and links elsewhere are left
// to the kernel.
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/procview/procview_internal.h"

#define PATH_BYTES 4096

static const struct Leaf {
    const char *name; // at most seven characters, see looks_like_leaf()
    ProcFile file;
} leaves[] = {
    { "exe", PROC_EXE },         { "maps", PROC_MAPS },       { "smaps", PROC_SMAPS },
    { "cmdline", PROC_CMDLINE }, { "environ", PROC_ENVIRON }, { "auxv", PROC_AUXV },
    { "limits", PROC_LIMITS },   { "statm", PROC_STATM },     { "stat", PROC_STAT },
    { "status", PROC_STATUS },
};

// ---------------------------------------------------------------- components

typedef struct Component {
    const char *text; // not terminated
    size_t len;       // 0 at the end of the path
} Component;

static Component next_component(const char **path)
{
    const char *p = *path;
    size_t len;

    for (;; p += len) {
        p += strspn(p, "/");
        len = strcspn(p, "/");
        if (len != 1 || *p != '.')
            break;
    }
    *path = p + len;
    return (Component){ p, len };
}

static bool is(Component c, const char *name)
{
    return strlen(name) == c.len && memcmp(c.text, name, c.len) == 0;
}

// Its value if it is a number as /proc writes them, else -1.
static i64 number_of(Component c)
{
    i64 value = 0;

    if (c.len == 0 || c.len > 9 || (c.text[0] == '0' && c.len > 1))
        return -1;
    for (size_t i = 0; i < c.len; i++) {
        if (c.text[i] < '0' || c.text[i] > '9')
            return -1;
        value = value * 10 + (c.text[i] - '0');
    }
    return value;
}

bool names_is_hidden_number(const char *text)
{
    i64 number = number_of((Component){ text, strcspn(text, "/") });
    return number >= 0 && descriptor_is_hidden((int)number);
}

// -------------------------------------------------------------- absolute paths

// A thread of this process, the first included.
static bool is_own_task(Component c)
{
    i64 tid = number_of(c);
    i64 pid = raw_syscall0(SYS_getpid);

    return tid > 0 && (tid == pid || raw_syscall3(SYS_tgkill, (u64)pid, (u64)tid, 0) == 0);
}

// Steps over the directory of this process or of one of its threads.
static bool enter_own_directory(const char **path, bool *ret_is_thread)
{
    if (!is(next_component(path), "proc"))
        return false;
    Component who = next_component(path);
    if (!is(who, "self") && !is(who, "thread-self") && !is_own_task(who))
        return false;
    *ret_is_thread = !is(who, "self") && number_of(who) != raw_syscall0(SYS_getpid);
    const char *behind = *path;
    if (is(next_component(&behind), "task")) {
        *path = behind;
        *ret_is_thread = true;
        return is_own_task(next_component(path));
    }
    return true;
}

static bool is_of_process(ProcFile file)
{
    return file == PROC_STATM || file == PROC_STAT || file == PROC_STATUS;
}

ProcFile names_classify(const char *path)
{
    if (path[0] != '/')
        return PROC_OTHER;
    if (strncmp(path, "/dev/fd/", 8) == 0)
        return names_is_hidden_number(path + 8) ? PROC_HIDDEN : PROC_OTHER;
    bool is_thread;
    if (!enter_own_directory(&path, &is_thread))
        return PROC_OTHER;
    Component leaf = next_component(&path);
    if (is(leaf, "fd") || is(leaf, "fdinfo")) {
        Component entry = next_component(&path);
        if (entry.len == 0)
            return leaf.len == 2 ? PROC_FD_DIR : PROC_OTHER;
        i64 fd = number_of(entry);
        return fd >= 0 && descriptor_is_hidden((int)fd) ? PROC_HIDDEN : PROC_OTHER;
    }
    if (*path) // these are no directories: the kernel says so
        return PROC_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
        if (is(leaf, leaves[i].name))
            return is_thread && is_of_process(leaves[i].file) ? PROC_OTHER : leaves[i].file;
    return PROC_OTHER;
}

bool procview_names_exe(const char *path)
{
    return names_classify(path) == PROC_EXE;
}

// ----------------------------------------------------------- the client's paths

// Whether a path that begins like this may lead to something of ours from the
// directory of a process, or from its fd.
static bool looks_like_leaf(const char first[8])
{
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
        if (strncmp(first, leaves[i].name, 8) == 0)
            return true;
    return strncmp(first, "fd/", 3) == 0 || strncmp(first, "fdinfo/", 7) == 0 ||
           (first[0] >= '1' && first[0] <= '9' && names_is_hidden_number(first));
}

// The path that the directory has now; false when there is none.
static bool directory_path(int dirfd, char *dst, size_t max)
{
    char link[32];

    if (dirfd == AT_FDCWD)
        text_format(link, sizeof(link), "/proc/thread-self/cwd");
    else
        text_format(link, sizeof(link), "/proc/thread-self/fd/%d", dirfd);
    i64 len = raw_syscall3(SYS_readlink, (u64)link, (u64)dst, max - 1);
    if (len <= 0)
        return false;
    dst[len] = '\0';
    return true;
}

// The first eight bytes of the path; false when it is of no interest.
static bool is_interesting(GuestAddr path)
{
    char first[9] = "";

    if (!guest_read(path, first, 8) && guest_read_string(path, first, 8) < 0)
        return false;
    return first[0] == '/' ? memcmp(first, "/proc/", 6) == 0 || memcmp(first, "/dev/fd/", 8) == 0
                           : looks_like_leaf(first);
}

ProcFile names_classify_argument(int dirfd, GuestAddr path)
{
    char text[2 * PATH_BYTES];
    size_t len = 0;

    if (LIKELY(!is_interesting(path)))
        return PROC_OTHER;
    if (guest_read_string(path, text, PATH_BYTES) < 0)
        return PROC_OTHER;
    if (text[0] != '/') {
        if (!directory_path(dirfd, text, PATH_BYTES) || strncmp(text, "/proc/", 6) != 0)
            return PROC_OTHER;
        len = strlen(text);
        text[len++] = '/';
        if (guest_read_string(path, text + len, PATH_BYTES) < 0)
            return PROC_OTHER;
    }
    return names_classify(text);
}

bool names_is_descriptor_listing(int fd)
{
    char text[PATH_BYTES];
    struct statfs fs;
    const char *path = text;
    bool is_thread;

    if (raw_syscall2(SYS_fstatfs, (u64)fd, (u64)&fs) != 0 || fs.f_type != PROC_SUPER_MAGIC)
        return false;
    if (!directory_path(fd, text, sizeof(text)) || !enter_own_directory(&path, &is_thread))
        return false;
    Component leaf = next_component(&path);
    return (is(leaf, "fd") || is(leaf, "fdinfo")) && *path == '\0';
}
