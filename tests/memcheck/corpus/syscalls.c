// SPDX-License-Identifier: MIT
//
// Parameters of system calls: the values themselves and the memory they point to, undefined or not
// addressable; and calls whose structures have padding that no kernel reads.
#include "corpus.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

static int null_device(void)
{
    return open("/dev/null", O_RDWR);
}

CASE(write_undefined)
{
    int fd = null_device();
    u8 *p = block(10);
    write(fd, p, 10);
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=uninitialised block=inside:0 of=10 origin=heap:-1
}

CASE(write_one_byte_undefined)
{
    int fd = null_device();
    u8 *p = block(10);
    memset(p, 0, 7);
    write(fd, p, 7);
    write(fd, p, 10);
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=uninitialised block=inside:7 of=10 origin=heap:-3
}

CASE(write_unaddressable)
{
    int fd = null_device();
    u8 *p = zeroed_block(10);
    write(fd, p, 11);
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=unaddressable block=after:0 of=10 alloc=-1
}

CASE(write_freed)
{
    int fd = null_device();
    u8 *p = freed_block(10);
    write(fd, p, 5);
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=unaddressable block=inside:0 of=10 state=freed
}

CASE(write_defined)
{
    int fd = null_device();
    u8 *p = zeroed_block(10);
    CHECK(write(fd, p, 10) == 10);
}

CASE(write_from_stack_undefined)
{
    volatile char local[32];
    write(null_device(), (char *)local, 32);
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=uninitialised where=stack origin=stack
}

CASE(write_fd_undefined)
{
    int *p = (int *)block(4);
    write(*(volatile int *)p | 0x40000000, "x", 1);
    // EXPECT memcheck syscall-param param=write(fd) by=value bad=uninitialised origin=heap:-1
}

CASE(write_count_undefined)
{
    u64 *p = (u64 *)block(8);
    int fd = null_device();
    write(fd, "x", *(volatile u64 *)p & 1);
    // EXPECT memcheck syscall-param param=write(count) by=value bad=uninitialised origin=heap:-2
}

CASE(write_pointer_and_memory)
{
    char **p = (char **)block(sizeof(char *));
    char *memory = (char *)block(4);
    int fd = null_device();
    write(fd, memory + 4 + (*(volatile u64 *)p & 1), 2);
    // EXPECT memcheck syscall-param param=write(buf) by=value bad=uninitialised origin=heap:-3
    // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=unaddressable
}

CASE(is_there_seccomp)
{
    CHECK(syscall(SYS_seccomp, 1, 0, NULL) == -1);
    CHECK(syscall(SYS_prctl, 22, 2, 0) == -1);
}

CASE(read_into_short_block)
{
    int fd = open("/dev/zero", O_RDONLY);
    u8 *p = block(10);
    read(fd, p, 11);
    // EXPECT memcheck syscall-param param=read(buf) by=pointer bad=unaddressable block=after:0 of=10
    READ1(p + 9);
    READ1(p + 10); // EXPECT-MUNINN memcheck invalid-read size=1 block=after:0 of=10 why=answers
}

CASE(read_defines)
{
    int fd = open("/dev/zero", O_RDONLY);
    u8 *p = block(10);
    CHECK(read(fd, p, 10) == 10);
    for (int i = 0; i < 10; i++)
        BRANCH(p[i]);
}

CASE(read_defines_only_what_came)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "abc", 3) == 3);
    u8 *p = block(10);
    CHECK(read(ends[0], p, 10) == 3);
    BRANCH(p[2]);
    BRANCH(p[3]); // EXPECT memcheck uninit-branch origin=heap:-3
}

CASE(open_path_undefined)
{
    char *p = (char *)block(8);
    p[0] = '/', p[7] = 0;
    open(p, O_RDONLY);
    // EXPECT memcheck syscall-param param=openat(filename) by=pointer bad=uninitialised origin=heap:-2
}

CASE(open_path_unterminated)
{
    char *p = (char *)block(4);
    memcpy(p, "/dev", 4);
    open(p, O_RDONLY);
    // EXPECT memcheck syscall-param param=openat(filename) by=pointer bad=unaddressable block=after:0 of=4
}

CASE(open_defined)
{
    char *p = (char *)block(10);
    strcpy(p, "/dev/null");
    int fd = open(p, O_RDONLY);
    CHECK(fd >= 0);
    close(fd);
}

CASE(close_undefined)
{
    int *p = (int *)block(4);
    close(*(volatile int *)p | 0x40000000);
    // EXPECT memcheck syscall-param param=close(fd) by=value bad=uninitialised origin=heap:-1
}

CASE(stat_defines)
{
    struct stat *s = (struct stat *)block(sizeof *s);
    CHECK(stat("/dev/null", s) == 0);
    BRANCH(s->st_mode);
    BRANCH(s->st_mtime);
    free(s);
}

CASE(stat_into_short_block)
{
    struct stat *s = (struct stat *)block(sizeof *s - 1);
    stat("/dev/null", s); // EXPECT memcheck syscall-param by=pointer bad=unaddressable
}

CASE(uname_defines)
{
    struct utsname *u = (struct utsname *)block(sizeof *u);
    CHECK(uname(u) == 0);
    BRANCH(u->sysname[0]);
    CHECK(strcmp(u->sysname, "Linux") == 0);
}

CASE(writev_undefined_buffer)
{
    u8 *p = block(8);
    struct iovec v[2] = {{(void *)"abc", 3}, {p, 8}};
    writev(null_device(), v, 2);
    // EXPECT memcheck syscall-param param=writev(vector[...]) by=pointer bad=uninitialised block=inside:0 of=8
}

CASE(writev_undefined_vector)
{
    struct iovec *v = (struct iovec *)block(2 * sizeof *v);
    v[0].iov_base = (void *)"abc", v[0].iov_len = 3;
    v[1].iov_base = (void *)"abc";
    v[1].iov_len = ((volatile struct iovec *)v)[1].iov_len & 1;
    writev(null_device(), v, 2);
    // EXPECT memcheck syscall-param param=writev(vector) by=pointer bad=uninitialised block=inside:24 of=32
}

CASE(writev_defined)
{
    struct iovec v[2] = {{(void *)"abc", 3}, {(void *)"defg", 4}};
    CHECK(writev(null_device(), v, 2) == 7);
}

CASE(readv_defines)
{
    u8 *p = block(8), *q = block(8);
    struct iovec v[2] = {{p, 8}, {q, 8}};
    CHECK(readv(open("/dev/zero", O_RDONLY), v, 2) == 16);
    BRANCH(p[7]);
    BRANCH(q[7]);
}

CASE(socket_address_padding)
{
    struct sockaddr_in *a = (struct sockaddr_in *)block(sizeof *a);
    a->sin_family = AF_INET;
    a->sin_port = 0;
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (struct sockaddr *)a, sizeof *a) == 0);
    close(fd);
}

CASE(socket_address_undefined)
{
    struct sockaddr_in *a = (struct sockaddr_in *)block(sizeof *a);
    a->sin_family = AF_INET;
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bind(fd, (struct sockaddr *)a, sizeof *a);
    // EXPECT memcheck syscall-param param=socketcall.bind(my_addr.sin_port) by=pointer bad=uninitialised
    close(fd);
}

CASE(unix_address)
{
    struct sockaddr_un a;
    a.sun_family = AF_UNIX;
    strcpy(a.sun_path, "/nonexistent/socket");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof a) == -1);
    close(fd);
}

CASE(socketpair_and_messages)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    BRANCH(ends[0]);
    u8 *p = block(5);
    struct iovec v = {(void *)"hello", 5}, w = {p, 5};
    struct msghdr out, in;
    memset(&out, 0, sizeof out);
    memset(&in, 0, sizeof in);
    out.msg_iov = &v, out.msg_iovlen = 1;
    in.msg_iov = &w, in.msg_iovlen = 1;
    CHECK(sendmsg(ends[0], &out, 0) == 5);
    CHECK(recvmsg(ends[1], &in, 0) == 5);
    CHECK(memcmp(p, "hello", 5) == 0);
}

CASE(sendto_undefined)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    u8 *p = block(5);
    send(ends[0], p, 5, 0);
    // EXPECT memcheck syscall-param param=socketcall.sendto(msg) by=pointer bad=uninitialised block=inside:0 of=5 origin=heap:-1
}

// The first byte that is wrong says what is wrong.
CASE(undefined_before_too_short)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    u8 *p = zeroed_block(8), *q = zeroed_block(8);
    *(u8 *)(p + 5) = *block(1);
    write(ends[0], p, 12);
    // EXPECT memcheck syscall-param param=write(buf) bad=uninitialised block=inside:5 of=8 origin=heap:-1
    write(ends[0], q, 12);
    // EXPECT memcheck syscall-param param=write(buf) bad=unaddressable block=after:0 of=8
}

// As from a call that has failed.
CASE(negative_sizes)
{
    u8 *p = zeroed_block(8);
    ssize_t size = -1;
    HIDE(size);
    int fd = open("/dev/null", O_WRONLY);
    write(fd, p, (size_t)size);
    // EXPECT memcheck syscall-param param=write(buf) bad=unaddressable block=after:0 of=8
    write(fd, p, (size_t)size >> 1);
    // EXPECT memcheck syscall-param param=write(buf) bad=unaddressable block=after:0 of=8
    read(fd, p, (size_t)size);
    // EXPECT memcheck syscall-param param=read(buf) bad=unaddressable block=after:0 of=8
    write(fd, p, (size_t)((u8 *)&fd - p)); // what lies between is not all mapped
    // EXPECT memcheck syscall-param param=write(buf) bad=unaddressable block=after:0 of=8
    close(fd);
}

CASE(words_of_parameters)
{
    char *text = (char *)block(3), *argv[] = {text, text, NULL}, *envp[] = {text, NULL};
    CHECK(execve("/nonexistent/program", argv, envp) == -1);
    // EXPECT memcheck syscall-param param=execve(argv[0]) bad=uninitialised origin=heap:-1
    // EXPECT memcheck syscall-param param=execve(argv[i]) bad=uninitialised origin=heap:-1
    // EXPECT memcheck syscall-param param=execve(envp[i]) bad=uninitialised origin=heap:-1
    struct epoll_event *event = (struct epoll_event *)block(sizeof *event);
    epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, 0, event);
    // EXPECT memcheck syscall-param param=epoll_ctl(event) bad=uninitialised origin=heap:-1
    u8 *four = block(4);
    int set = semget(IPC_PRIVATE, 2, 0600 | IPC_CREAT);
    semctl(set, 0, SETALL, four);
    // EXPECT memcheck syscall-param block=inside:0 of=4 origin=heap:-2
    semctl(set, 0, IPC_RMID);
}

CASE(poll_and_epoll)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct pollfd *p = (struct pollfd *)block(sizeof *p);
    p->fd = ends[1], p->events = POLLOUT;
    CHECK(poll(p, 1, 0) == 1);
    BRANCH(p->revents);
    int e = epoll_create1(0);
    struct epoll_event event, *got = (struct epoll_event *)block(4 * sizeof *got);
    event.events = EPOLLOUT;
    event.data.fd = 5;
    CHECK(epoll_ctl(e, EPOLL_CTL_ADD, ends[1], &event) == 0);
    CHECK(epoll_wait(e, got, 4, 0) == 1);
    BRANCH(got->events);
    BRANCH((got->data.fd & 0xff) == 5);
}

CASE(poll_undefined)
{
    struct pollfd *p = (struct pollfd *)block(sizeof *p);
    p->events = POLLOUT;
    poll(p, 1, 0);
    // EXPECT memcheck syscall-param param=poll(ufds.fd) by=pointer bad=uninitialised origin=heap:-2
}

CASE(select_defined)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    struct timeval now = {0, 0};
    CHECK(select(ends[1] + 1, NULL, &set, NULL, &now) == 1);
    CHECK(FD_ISSET(ends[1], &set));
}

CASE(nanosleep_undefined)
{
    struct timespec *t = (struct timespec *)block(sizeof *t);
    t->tv_sec = 0;
    t->tv_nsec = ((volatile struct timespec *)t)->tv_nsec & 1;
    nanosleep(t, NULL); // EXPECT memcheck syscall-param by=pointer bad=uninitialised
}

CASE(nanosleep_defined)
{
    struct timespec t = {0, 1000};
    CHECK(nanosleep(&t, NULL) == 0);
}

CASE(ioctl_defines)
{
    int ends[2], *n = (int *)block(sizeof *n);
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "abc", 3) == 3);
    CHECK(ioctl(ends[0], FIONREAD, n) == 0);
    CHECK(*n == 3);
}

CASE(getcwd_defines)
{
    char *p = (char *)block(4096);
    CHECK(getcwd(p, 4096));
    CHECK(p[0] == '/');
    BRANCH(strlen(p));
}

CASE(time_defines)
{
    struct timespec *t = (struct timespec *)block(sizeof *t);
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, t) == 0);
    BRANCH(t->tv_sec);
    BRANCH(t->tv_nsec);
}

CASE(raw_syscall_undefined_argument)
{
    long *p = (long *)block(8);
    syscall(SYS_lseek, 0, *(volatile long *)p & 1, SEEK_SET);
    // EXPECT memcheck syscall-param param=lseek(offset) by=value bad=uninitialised origin=heap:-1
}

CASE(exit_code_undefined)
{
    int *p = (int *)block(4);
    _exit(*(volatile int *)p & 0x100);
    // EXPECT memcheck syscall-param by=value bad=uninitialised param=exit_group(status)
}

CASE(wait_defines)
{
    int *status = (int *)block(4);
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    CHECK(waitpid(pid, status, 0) == pid);
    CHECK(WEXITSTATUS(*status) == 3);
}

CASE(sigaction_padding)
{
    sigset_t *set = (sigset_t *)block(sizeof *set);
    sigemptyset(set);
    CHECK(sigprocmask(SIG_BLOCK, set, NULL) == 0);
    sigset_t *old = (sigset_t *)block(sizeof *old);
    CHECK(sigprocmask(SIG_BLOCK, NULL, old) == 0);
    BRANCH(sigismember(old, SIGINT));
}

CASE(timer_interval)
{
    struct itimerval none = {{0, 0}, {0, 0}}, *old = (struct itimerval *)block(sizeof *old);
    CHECK(setitimer(ITIMER_REAL, &none, old) == 0);
    BRANCH(old->it_value.tv_sec);
}

CASE(read_link_defines_what_came)
{
    char *p = (char *)block(4096);
    ssize_t n = readlink("/proc/self/exe", p, 4096);
    CHECK(n > 0);
    BRANCH(p[n - 1]);
    BRANCH(p[n]); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(directory_listing)
{
    u8 *p = block(32768);
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    long n = syscall(SYS_getdents64, fd, p, 32768);
    CHECK(n > 0);
    BRANCH(p[0]);
    BRANCH(p[18]);
}

CASE(stdio_writes_undefined)
{
    FILE *f = fopen("/dev/null", "w");
    u8 *p = block(10);
    fwrite(p, 1, 10, f);
    fclose(f); // EXPECT memcheck syscall-param param=write(buf) by=pointer bad=uninitialised
}

CASE(stdio_writes_defined)
{
    FILE *f = fopen("/dev/null", "w");
    fprintf(f, "%d %s\n", 5, "five");
    fclose(f);
}
