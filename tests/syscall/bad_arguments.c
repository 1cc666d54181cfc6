// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// EBADF, EINVAL, ENOTTY, ESRCH and friends: the errors of the kernel.
#include "guest.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

int main(void)
{
    char buffer[64];
    int file = memfd_create("f", 0);
    SHOW(read(77, buffer, 1));
    SHOW(write(-1, buffer, 1));
    SHOW(close(77));
    SHOW(close(-1));
    SHOW(dup(77));
    SHOW(dup2(0, -1));
    SHOW(syscall(SYS_dup3, 0, 0, 0));
    SHOW(fcntl(77, F_GETFD));
    SHOW(fcntl(0, 4242));
    SHOW(ioctl(file, TCGETS, buffer));
    SHOW(ioctl(77, TCGETS, buffer));
    SHOW(lseek(file, -5, SEEK_SET));
    SHOW(lseek(file, 0, 99));
    SHOW(ftruncate(file, -1));
    SHOW(open("/dev/null/x", O_RDONLY));
    SHOW(open("/", O_WRONLY));
    SHOW(open("", O_RDONLY));
    SHOW(openat(77, "x", O_RDONLY));
    SHOW(openat(file, "x", O_RDONLY));
    SHOW(mkdir("/proc/nothing", 0700));
    SHOW(rmdir("/dev"));
    SHOW(unlink("/"));
    SHOW(socket(999, 0, 0));
    SHOW(listen(file, 1));
    SHOW(connect(77, NULL, 0));
    SHOW(epoll_ctl(file, EPOLL_CTL_ADD, 0, NULL));
    SHOW(epoll_create1(12345));
    SHOW(kill(0x3fffffff, SIGTERM));
    SHOW(kill(getpid(), 65));
    SHOW(kill(getpid(), -1));
    SHOW(waitpid(0x3fffffff, NULL, 0));
    SHOW(waitpid(-1, NULL, 0x7fff0000));
    SHOW(setpgid(0x3fffffff, 0));
    SHOW(syscall(SYS_clock_gettime, 12345, buffer));
    SHOW(syscall(SYS_membarrier, 0x7fffffff, 0, 0));
    SHOW(syscall(SYS_prctl, 123456, 0, 0, 0, 0));
    SHOW(syscall(SYS_getrandom, buffer, 10, 0xff));
    SHOW(syscall(SYS_timer_settime, 12345, 0, NULL, NULL));
    SHOW(syscall(SYS_personality, 0xffffffff) >= 0);
    return 0;
}
