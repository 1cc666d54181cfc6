// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// Descriptor numbers are handed out as natively, through and beyond the range where the engine keeps
// its own: by open, dup, dup2, dup3, F_DUPFD, pipe and socketpair; what is not open is EBADF or ENOENT
// in every form.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { FROM = 7900, TO = 8400 };

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 20000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int count_listed(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

// What a closed number looks like; counts the calls that do not say so.
static int seen_open(int fd)
{
    char path[64], target[64], byte;
    struct stat st;
    int epoll = epoll_create1(0), wrong = 0;
    struct epoll_event event = {0};
    wrong += read(fd, &byte, 1) != -1 || errno != EBADF;
    wrong += write(fd, &byte, 1) != -1 || errno != EBADF;
    wrong += close(fd) != -1 || errno != EBADF;
    wrong += dup(fd) != -1 || errno != EBADF;
    wrong += dup2(fd, 50) != -1 || errno != EBADF;
    wrong += dup2(fd, fd) != -1 || errno != EBADF;
    wrong += dup3(50, fd, 0) != -1 || errno != EBADF;
    wrong += fcntl(fd, F_SETFD, 0) != -1 || errno != EBADF;
    wrong += fstat(fd, &st) != -1 || errno != EBADF;
    wrong += fstatat(fd, "x", &st, 0) != -1 || errno != EBADF;
    wrong += fstatat(fd, "/", &st, 0) != 0;
    wrong += epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != -1 || errno != EBADF;
    wrong += mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED || errno != EBADF;
    struct pollfd poll_fd = {fd, POLLIN | POLLOUT, 0};
    wrong += poll(&poll_fd, 1, 0) != 1 || poll_fd.revents != POLLNVAL;
    close(epoll);
    static const char *const forms[] = {"/proc/self/fd/%d", "/proc//self/./fd/%d", "/dev/fd/%d",
                                        "/proc/thread-self/fdinfo/%d"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(path, sizeof path, forms[i], fd);
        wrong += open(path, O_RDONLY) != -1 || errno != ENOENT;
        wrong += lstat(path, &st) != -1 || errno != ENOENT;
        wrong += access(path, F_OK) != -1 || errno != ENOENT;
        wrong += readlink(path, target, sizeof target) != -1 || errno != ENOENT;
    }
    return wrong;
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < 16384) {
        say("the limit is too low\n");
        return 0;
    }
    limit.rlim_cur = limit.rlim_max = 16384;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    closefrom(3);
    int wrong = 0;
    for (int fd = FROM; fd < TO; fd++)
        wrong += seen_open(fd) != 0;
    say("seen open %d, count %d, listed %d %d\n", wrong, count_open(),
        count_listed("/proc/self/fd"), count_listed("/proc/self/fdinfo"));

    struct stat st;
    CHECK(stat("/proc/self/fd", &st) == 0);
    say("directory of size %d\n", (int)st.st_size);

    wrong = 0;
    for (int fd = FROM; fd < TO; fd += 2)
        wrong += dup2(1, fd) != fd || fcntl(fd, F_GETFD) != 0;
    say("dup2 wrong %d, count %d\n", wrong, count_open());
    closefrom(3);
    for (int fd = FROM; fd < TO; fd++)
        wrong += dup3(1, fd, O_CLOEXEC) != fd || fcntl(fd, F_GETFD) != FD_CLOEXEC;
    say("dup3 wrong %d, count %d\n", wrong, count_open());
    closefrom(3);
    for (int fd = FROM; fd < TO; fd++)
        wrong += fcntl(0, fd & 1 ? F_DUPFD : F_DUPFD_CLOEXEC, FROM) != fd ||
                 fcntl(fd, F_GETFD) != !(fd & 1);
    say("F_DUPFD wrong %d, count %d\n", wrong, count_open());

    SHOW(close_range(FROM, TO, CLOSE_RANGE_CLOEXEC));
    for (int fd = FROM; fd < TO; fd++)
        wrong += fcntl(fd, F_GETFD) != FD_CLOEXEC;
    SHOW(close_range(FROM + 10, TO - 10, 0));
    say("close_range wrong %d, count %d\n", wrong, count_open());
    SHOW(close_range(3, ~0U, CLOSE_RANGE_UNSHARE));
    SHOW(syscall(SYS_close_range, 8000, 8000, 0));
    SHOW(syscall(SYS_close_range, 8001, 8000, 0));
    SHOW(syscall(SYS_close_range, 3, ~0U, 128));
    say("count %d\n", count_open());
    return 0;
}
