// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
//
// The ways a path can lead to a file of one's own in /proc: forms of the name, relative to a directory
// or to the working directory, by each call that takes a path; and paths that are none.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static dev_t own_device;
static ino_t own_inode;

static void show_exe(const char *label, int dirfd, const char *path)
{
    struct stat st, link;
    struct statx stx;
    char target[PATH_MAX] = "", own[PATH_MAX] = "";
    bool same = fstatat(dirfd, path, &st, 0) == 0 && st.st_ino == own_inode;
    bool same_x = statx(dirfd, path, 0, STATX_INO, &stx) == 0 && stx.stx_ino == own_inode;
    fstatat(dirfd, path, &link, AT_SYMLINK_NOFOLLOW);
    ssize_t length = readlinkat(dirfd, path, target, sizeof target - 1);
    CHECK(realpath("/proc/self/exe", own) != NULL);
    int fd = openat(dirfd, path, O_RDONLY);
    bool opened = fstat(fd, &st) == 0 && st.st_ino == own_inode && st.st_dev == own_device;
    close(fd);
    say("%s: stat %d statx %d link %d size %d, text %d, open %d, write %d %s, nofollow %d %s, "
        "access %d %d\n", label, same, same_x, S_ISLNK(link.st_mode), (int)link.st_size,
        length > 0 && strcmp(target, own) == 0, opened, openat(dirfd, path, O_RDWR),
        error_name(errno), openat(dirfd, path, O_RDONLY | O_NOFOLLOW), error_name(errno),
        faccessat(dirfd, path, X_OK, 0), faccessat(dirfd, path, R_OK, AT_EACCESS));
}

// Whether the file lists the mapping of this function and nothing of an engine.
static void show_maps(const char *label, int fd)
{
    static char text[1 << 20];
    ssize_t size = 0, got;
    while ((got = read(fd, text + size, sizeof text - 1 - size)) > 0)
        size += got;
    text[size] = 0;
    say("%s: %s, stack %d, foreign %d, writable %zd %s, again %d\n", label,
        fd < 0 ? error_name(errno) : "opened", strstr(text, "[stack]") != NULL,
        strstr(text, "muninn") != NULL || strstr(text, "Zydis") != NULL, write(fd, "x", 1),
        error_name(errno), lseek(fd, 0, SEEK_SET) == 0 && read(fd, text, 100) == 100);
    close(fd);
}

static int open_by_how(const char *path, unsigned long flags, unsigned long resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int main(int argc, char **argv)
{
    static const char *const forms[] = {"/proc/self/exe", "/proc//self/./exe", "/proc/thread-self/exe",
                                        "/proc/./self//exe"};
    char path[PATH_MAX];
    struct stat st;
    CHECK(argc > 0 && stat(argv[0], &st) == 0);
    own_device = st.st_dev, own_inode = st.st_ino;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        show_exe(forms[i], AT_FDCWD, forms[i]);
    snprintf(path, sizeof path, "/proc/%d/exe", getpid());
    show_exe("/proc/<pid>/exe", AT_FDCWD, path);
    snprintf(path, sizeof path, "/proc/self/task/%d/exe", getpid());
    show_exe("/proc/self/task/<tid>/exe", AT_FDCWD, path);
    int dir = open("/proc/self", O_PATH | O_DIRECTORY);
    show_exe("dirfd", dir, "exe");
    show_maps("maps", open("/proc/self/maps", O_RDONLY));
    show_maps("maps at", openat(dir, "maps", O_RDONLY));
    show_maps("smaps", open("/proc/self/smaps", O_RDONLY));
    show_maps("openat2", open_by_how("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0));
    int beneath = open_by_how("/proc/self/exe", O_RDONLY, RESOLVE_NO_MAGICLINKS);
    say("no magic links: %d %s\n", beneath, error_name(errno));
    CHECK(chdir("/proc/self") == 0);
    show_exe("cwd", AT_FDCWD, "exe");
    show_maps("cwd maps", open("maps", O_RDONLY));
    CHECK(chdir("/tmp") == 0);

    SHOW(open("/proc/self/exe/", O_RDONLY));
    SHOW(open("/proc/self/maps/x", O_RDONLY));
    SHOW(open("/proc/self/maps", O_RDONLY | O_DIRECTORY));
    SHOW(open("/proc/self/nothing", O_RDONLY));
    SHOW(open("/proc/0/exe", O_RDONLY));
    SHOW(open("/proc/self/task/1/maps", O_RDONLY));
    SHOW(open("exe", O_RDONLY));
    SHOW(open("", O_RDONLY));
    SHOW(open((char *)8, O_RDONLY));
    SHOW(access((char *)-8, R_OK));
    SHOW(syscall(SYS_readlink, "/proc/self/exe", 8, 100));
    SHOW(readlink("/proc/self/exe", path, 0));
    SHOW(syscall(SYS_stat, "/proc/self/exe", 8));
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memcpy(page + 4096 - 3, "fd", 3);
    SHOW(open(page + 4096 - 3, O_RDONLY));
    memcpy(page + 4096 - 10, "/proc/self", 10);
    SHOW(open(page + 4096 - 10, O_RDONLY));
    memcpy(page + 4096 - 5, "/proc", 5);
    SHOW(open(page + 4096 - 5, O_RDONLY));
    return 0;
}
