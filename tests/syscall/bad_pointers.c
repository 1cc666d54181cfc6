// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// A bad pointer given to a system call is EFAULT (or whatever the kernel says), never a crash and
// never a success; also a buffer that is good only at its start, and one that is not writable.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#define BAD ((void *)0x50000000000)

int main(void)
{
    int ends[2], sockets[2], file = memfd_create("f", 0);
    CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
    CHECK(write(ends[1], "0123456789", 10) == 10 && write(file, "0123456789", 10) == 10);
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + 4096, 4096);
    char *edge = two + 4096 - 4;
    char *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    SHOW(syscall(SYS_open, BAD, O_RDONLY));
    SHOW(syscall(SYS_open, (void *)-1L, O_RDONLY));
    SHOW(syscall(SYS_read, ends[0], BAD, 4));
    SHOW(syscall(SYS_read, ends[0], constant, 4));
    SHOW(syscall(SYS_write, ends[1], BAD, 4));
    SHOW(syscall(SYS_pread64, file, edge, 10, 0));
    say("edge %.4s\n", edge);
    SHOW(syscall(SYS_pwrite64, file, edge, 10, 0));
    SHOW(syscall(SYS_stat, "/", BAD));
    SHOW(syscall(SYS_stat, BAD, two));
    SHOW(syscall(SYS_fstat, file, constant));
    SHOW(syscall(SYS_getcwd, BAD, 4096));
    SHOW(syscall(SYS_uname, BAD));
    SHOW(syscall(SYS_uname, edge));
    SHOW(syscall(SYS_gettimeofday, BAD, NULL));
    SHOW(syscall(SYS_clock_gettime, CLOCK_REALTIME, BAD));
    SHOW(syscall(SYS_nanosleep, BAD, NULL));
    SHOW(syscall(SYS_pipe2, BAD, 0));
    SHOW(syscall(SYS_poll, BAD, 1, 0));
    SHOW(syscall(SYS_select, 5, BAD, NULL, NULL, NULL));
    SHOW(syscall(SYS_epoll_ctl, epoll_create1(0), EPOLL_CTL_ADD, ends[0], BAD));
    SHOW(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, BAD));
    SHOW(syscall(SYS_bind, sockets[0], BAD, 16));
    SHOW(syscall(SYS_sendto, sockets[0], BAD, 10, 0, NULL, 0));
    SHOW(syscall(SYS_sendmsg, sockets[0], BAD, 0));
    SHOW(syscall(SYS_recvmsg, sockets[0], BAD, MSG_DONTWAIT));
    SHOW(syscall(SYS_getsockopt, sockets[0], SOL_SOCKET, SO_TYPE, BAD, BAD));
    SHOW(syscall(SYS_readv, ends[0], BAD, 1));
    struct iovec bad_part[] = {{two, 2}, {BAD, 2}};
    SHOW(syscall(SYS_readv, ends[0], bad_part, 2));
    SHOW(syscall(SYS_writev, ends[1], bad_part, 2));
    SHOW(syscall(SYS_execve, BAD, NULL, NULL));
    SHOW(syscall(SYS_execve, "/bin/true", BAD, NULL));
    SHOW(syscall(SYS_wait4, -1, BAD, 0, NULL));
    SHOW(syscall(SYS_rt_sigaction, SIGUSR1, NULL, BAD, 8));
    SHOW(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, BAD, 8));
    SHOW(syscall(SYS_getrlimit, 0, BAD));
    SHOW(syscall(SYS_sysinfo, BAD));
    SHOW(syscall(SYS_getrandom, BAD, 16, 0));
    SHOW(syscall(SYS_set_tid_address, BAD) > 0);
    SHOW(syscall(SYS_prctl, 16, BAD)); // PR_GET_NAME
    SHOW(syscall(SYS_mincore, two, 4096, BAD));
    SHOW(syscall(SYS_readlink, "/proc/self/exe", BAD, 100));
    SHOW(syscall(SYS_getdents64, open("/", O_RDONLY | O_DIRECTORY), BAD, 1000));
    SHOW(syscall(SYS_ioctl, ends[0], 0x541b, BAD)); // FIONREAD
    SHOW(syscall(SYS_futex, BAD, 0, 0, NULL, NULL, 0));
    SHOW(syscall(SYS_timer_create, CLOCK_REALTIME, BAD, two));
    SHOW(syscall(SYS_setitimer, ITIMER_REAL, BAD, NULL));
    SHOW(syscall(SYS_statx, AT_FDCWD, "/", 0, 0, BAD));
    SHOW(syscall(SYS_arch_prctl, 0x1003, BAD)); // ARCH_GET_FS
    return 0;
}
