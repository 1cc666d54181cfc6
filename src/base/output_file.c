// SPDX-License-Identifier: MIT
//
// See output_file.h. Each name is looked up in a directory that is held open, and each link is read
// by the descriptor of the very link whose owner was looked at, so that nothing can be exchanged
// between the look and the use.
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/raw_syscall.h"

enum { LINKS_MAX = 40, MODE = 0666 };

bool output_is_borrowed(const char *path)
{
    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
           strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static i64 open_at(i64 directory, const char *name, int flags)
{
    return raw_syscall4(SYS_openat, (u64)directory, (u64)name, (u64)(flags | O_CLOEXEC), MODE);
}

static void close_fd(i64 fd)
{
    if (fd >= 0)
        raw_syscall1(SYS_close, (u64)fd);
}

static u32 own_uid(void)
{
    return (u32)raw_syscall0(SYS_geteuid);
}

static bool is_trusted(u32 uid)
{
    return uid == 0 || uid == own_uid();
}

static bool others_can_write(const struct stat *directory)
{
    return (directory->st_mode & (S_IWGRP | S_IWOTH)) || !is_trusted(directory->st_uid);
}

// Reads the link `name`, if it may be followed. 0 or -errno.
static i64 follow(i64 directory, const char *name, char ret_target[PATH_MAX])
{
    struct stat link, place;
    i64 fd = open_at(directory, name, O_PATH | O_NOFOLLOW);
    i64 error = fd < 0 ? fd : raw_syscall2(SYS_fstat, (u64)fd, (u64)&link);

    if (error >= 0)
        error = raw_syscall2(SYS_fstat, (u64)directory, (u64)&place);
    if (error >= 0 && others_can_write(&place) && !is_trusted(link.st_uid))
        error = OUTPUT_FOREIGN_LINK;
    i64 size = -1;
    if (error >= 0)
        size = error =
            raw_syscall4(SYS_readlinkat, (u64)fd, (u64)"", (u64)ret_target, PATH_MAX - 1);
    if (size >= 0)
        ret_target[size] = '\0';
    close_fd(fd);
    return error < 0 ? error : 0;
}

// Opens the directory that the name lies in, as seen from `from`, and moves the name to its last
// part.
static i64 open_place(i64 from, char *path, char **ret_name)
{
    char *slash = strrchr(path, '/');

    *ret_name = slash ? slash + 1 : path;
    if (!slash)
        return open_at(from, ".", O_PATH | O_DIRECTORY);
    if (slash == path)
        return open_at(from, "/", O_PATH | O_DIRECTORY);
    *slash = '\0';
    return open_at(from, path, O_PATH | O_DIRECTORY);
}

static i64 open_through_links(char path[PATH_MAX], int flags)
{
    char target[PATH_MAX];
    i64 from = AT_FDCWD;

    for (int i = 0; i < LINKS_MAX; i++) {
        char *name;
        i64 place = open_place(from, path, &name);
        close_fd(from);
        if (place < 0)
            return place;
        i64 fd = *name ? open_at(place, name, flags | O_CREAT | O_NOFOLLOW) : -EISDIR;
        i64 error = fd == -ELOOP ? follow(place, name, target) : fd;
        if (fd != -ELOOP || error < 0) {
            close_fd(place);
            return error;
        }
        memcpy(path, target, PATH_MAX);
        if (output_is_borrowed(path)) {
            close_fd(place);
            return open_at(AT_FDCWD, path, (flags & ~O_TRUNC) | O_APPEND);
        }
        from = place;
    }
    return -EMLINK;
}

int output_open(const char *path, int flags)
{
    char copy[PATH_MAX];
    size_t size = strlen(path) + 1;

    if (output_is_borrowed(path))
        return (int)open_at(AT_FDCWD, path, (flags & ~O_TRUNC) | O_APPEND | O_NOCTTY);
    if (size > sizeof(copy))
        return -ENAMETOOLONG;
    memcpy(copy, path, size);
    return (int)open_through_links(copy, flags | O_NOCTTY);
}

// Opens the directory that `path` lies in; *ret_name points into `copy`.
static i64 open_place_of(const char *path, char copy[PATH_MAX], char **ret_name)
{
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(copy, path);
    return open_place(AT_FDCWD, copy, ret_name);
}

int output_open_unnamed(const char *path)
{
    char copy[PATH_MAX];
    char *name;
    struct stat status;
    i64 place = output_is_borrowed(path) ? -EEXIST : open_place_of(path, copy, &name);

    if (place < 0)
        return (int)place;
    i64 fd = -EEXIST;
    if (*name && raw_syscall4(SYS_newfstatat, (u64)place, (u64)name, (u64)&status,
                              AT_SYMLINK_NOFOLLOW) == -ENOENT)
        fd = open_at(place, ".", O_TMPFILE | O_WRONLY);
    close_fd(place);
    return (int)fd;
}

int output_appear(int fd, const char *path)
{
    char copy[PATH_MAX], self[32];
    char *name;
    i64 place = open_place_of(path, copy, &name);

    if (place < 0)
        return (int)place;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    i64 error = raw_syscall6(SYS_linkat, (u64)AT_FDCWD, (u64)self, (u64)place, (u64)name,
                             AT_SYMLINK_FOLLOW, 0);
    close_fd(place);
    return (int)error;
}

// The kernel may refuse such links as well (fs.protected_symlinks), but says "permission denied".
static i64 probe_link(const char *path)
{
    char copy[PATH_MAX], target[PATH_MAX];
    struct stat status;
    char *name;

    if (raw_syscall2(SYS_lstat, (u64)path, (u64)&status) != 0 || !S_ISLNK(status.st_mode))
        return 0;
    i64 place = open_place_of(path, copy, &name);
    i64 error = place < 0 ? place : follow(place, name, target);
    close_fd(place);
    return error;
}

int output_probe(const char *path)
{
    struct stat status;
    char copy[PATH_MAX];
    char *name;
    i64 fd = output_is_borrowed(path) ? 0 : probe_link(path);

    if (fd < 0)
        return (int)fd;
    if (raw_syscall2(SYS_stat, (u64)path, (u64)&status) == 0) {
        // To open a FIFO waits for a reader, and to open a device may do something.
        if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
            return (int)raw_syscall2(SYS_access, (u64)path, W_OK);
        fd = output_open(path, O_WRONLY);
    } else {
        fd = open_place_of(path, copy, &name);
        if (fd < 0)
            return (int)fd;
        i64 error = raw_syscall4(SYS_faccessat, (u64)fd, (u64)".", W_OK | X_OK, 0);
        close_fd(fd);
        return (int)error;
    }
    close_fd(fd);
    return fd < 0 ? (int)fd : 0;
}

bool output_is_kept(const char *path)
{
    struct stat status;

    if (output_is_borrowed(path))
        return false;
    return raw_syscall2(SYS_stat, (u64)path, (u64)&status) != 0 || S_ISREG(status.st_mode);
}

const char *output_error(int error)
{
    if (error == OUTPUT_FOREIGN_LINK)
        return "it is a symbolic link of another user's, in a directory that others can write to";
    return strerror(-error);
}

FILE *output_stream(const char *path, int *ret_error)
{
    int fd = output_open(path, O_WRONLY | O_TRUNC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "we");

    *ret_error = fd < 0 ? fd : file ? 0 : -errno;
    if (fd >= 0 && !file)
        close_fd(fd);
    return file;
}
