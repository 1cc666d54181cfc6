// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// getdents on /proc/self/fd and on a fresh directory, openat2 with RESOLVE flags, statx,
// faccessat2, renameat2, links, times and modes.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void list(const char *path)
{
    char names[64][32], buffer[300]; // small, so that it takes several calls
    int count = 0, fd = open(path, O_RDONLY | O_DIRECTORY);
    for (long got; (got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;)
        for (char *p = buffer; p < buffer + got; p += *(uint16_t *)(p + 16))
            snprintf(names[count++ % 64], 32, "%s/%d", p + 19, *(uint8_t *)(p + 18));
    close(fd);
    qsort(names, count, sizeof *names, (int (*)(const void *, const void *))strcmp);
    for (int i = 0; i < count; i++)
        say("%s ", names[i]);
    say("\n");
}

static long openat2(const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int main(void)
{
    char root[] = "dir.XXXXXX", name[32];
    CHECK(mkdtemp(root) && chdir(root) == 0);
    list("/proc/self/fd");
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof name, "file-%02d", i);
        close(open(name, O_CREAT | O_WRONLY, 0640));
    }
    SHOW(mkdir("sub", 0700));
    SHOW(symlink("../..", "sub/up"));
    SHOW(link("file-03", "sub/hard"));
    list(".");
    list("sub");
    SHOW(openat2("file-01", O_RDONLY, 0));
    SHOW(openat2("sub/up/x", O_RDONLY, RESOLVE_BENEATH));
    SHOW(openat2("sub/up", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS));
    SHOW(openat2("file-01", O_RDONLY, 1UL << 40));
    struct statx x;
    SHOW(statx(AT_FDCWD, "file-03", 0, STATX_BASIC_STATS, &x));
    say("mode %o links %u size %llu blocks %llu\n", x.stx_mode, x.stx_nlink,
        (unsigned long long)x.stx_size, (unsigned long long)x.stx_blocks);
    struct stat s;
    SHOW(lstat("sub/up", &s));
    say("link mode %o size %ld\n", s.st_mode, (long)s.st_size);
    SHOW(syscall(SYS_faccessat2, AT_FDCWD, "file-01", X_OK, 0));
    SHOW(rename("file-01", "renamed"));
    SHOW(renameat2(AT_FDCWD, "file-02", AT_FDCWD, "file-03", RENAME_NOREPLACE));
    SHOW(renameat2(AT_FDCWD, "file-02", AT_FDCWD, "file-04", RENAME_EXCHANGE));
    struct timespec times[2] = {{1000000000, 5}, {1234567890, 987654321}};
    SHOW(utimensat(AT_FDCWD, "renamed", times, 0));
    CHECK(stat("renamed", &s) == 0);
    say("modified %ld.%09ld\n", (long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    SHOW(chmod("renamed", 04711));
    CHECK(stat("renamed", &s) == 0);
    say("mode %o\n", s.st_mode);
    char target[4];
    SHOW(readlink("sub/up", target, sizeof target));
    SHOW(truncate("renamed", 12345));
    CHECK(stat("renamed", &s) == 0);
    say("size %ld\n", (long)s.st_size);
    umask(027);
    say("umask %o\n", umask(022));
    return 0;
}
