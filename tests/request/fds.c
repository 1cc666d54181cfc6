// SPDX-License-Identifier: MIT
//
// Descriptors for --track-fds. Each mode leaves some open and, at the end, prints "open N" for every
// number that is: the harness compares that with the list in the log.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/close_range.h>
#include <linux/io_uring.h>
#include <linux/memfd.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "guest.h"

static void list_open(void)
{
    say("pid %d\n", getpid());
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            say("open %d\n", fd);
}

// A call that this kernel or container refuses leaves nothing open, which is fine.
#define MAKE(call) (void)!(call)

static void internet(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    bind(server, (struct sockaddr *)&address, sizeof address);
    listen(server, 5);
    getsockname(server, (struct sockaddr *)&address, &length);
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        MAKE(connect(client, (struct sockaddr *)&address, sizeof address));
    }
    MAKE(accept(server, NULL, NULL));
    MAKE(accept4(server, NULL, NULL, SOCK_CLOEXEC));
    MAKE(socket(AF_INET6, SOCK_DGRAM, 0));
}

static void send_fds(int to, const int *fds, int count)
{
    char control[CMSG_SPACE(16 * sizeof(int))] = {0}, byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, (size_t)count * sizeof(int));
    CHECK(sendmsg(to, &message, 0) == 1);
}

static void messages(void)
{
    int pair[2], fds[3] = {0, 1, 2};
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    for (int i = 0; i < 3; i++)
        send_fds(pair[0], fds, 3);
    char control[3][256], byte[3];
    struct iovec iov[3] = {{&byte[0], 1}, {&byte[1], 1}, {&byte[2], 1}};
    struct mmsghdr message[3] = {{{0}}};
    for (int i = 0; i < 3; i++) {
        message[i].msg_hdr.msg_iov = &iov[i];
        message[i].msg_hdr.msg_iovlen = 1;
        message[i].msg_hdr.msg_control = control[i];
        message[i].msg_hdr.msg_controllen = sizeof control[i];
    }
    CHECK(recvmsg(pair[1], &message[0].msg_hdr, 0) == 1);
    CHECK(recvmmsg(pair[1], message + 1, 2, 0, NULL) == 2);
}

static void clones(void)
{
    int pidfd = -1;
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    int second = -1;
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uint64_t)&second, .exit_signal = SIGCHLD};
    child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, 0);
    MAKE(syscall(SYS_pidfd_open, getpid(), 0));
    int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    MAKE(syscall(SYS_pidfd_getfd, own, 1, 0));
}

static void every_call(void)
{
    sigset_t none;
    sigemptyset(&none);
    int pair[2];
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    MAKE(open("/", O_RDONLY | O_DIRECTORY));
    MAKE(creat("/dev/null", 0600));
    MAKE(openat(AT_FDCWD, "/dev/zero", O_RDONLY));
    uint64_t how[3] = {O_RDONLY, 0, 0};
    MAKE(syscall(SYS_openat2, AT_FDCWD, "/dev/zero", how, sizeof how));
    MAKE(dup(file));
    MAKE(dup2(file, 200));
    MAKE(dup2(file, file));
    MAKE(dup3(file, 201, O_CLOEXEC));
    MAKE(fcntl(file, F_DUPFD, 300));
    MAKE(fcntl(file, F_DUPFD_CLOEXEC, 300));
    MAKE(syscall(SYS_pipe, pair));
    MAKE(pipe2(pair, O_CLOEXEC));
    MAKE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MAKE(syscall(SYS_eventfd, 0));
    MAKE(eventfd(0, 0));
    int signals = signalfd(-1, &none, 0);
    MAKE(signalfd(signals, &none, 0));
    MAKE(timerfd_create(CLOCK_MONOTONIC, 0));
    MAKE(syscall(SYS_epoll_create, 1));
    MAKE(epoll_create1(0));
    MAKE(inotify_init());
    MAKE(inotify_init1(0));
    MAKE(memfd_create("a memfd", 0));
    MAKE(syscall(SYS_userfaultfd, 1));
    MAKE(syscall(SYS_perf_event_open, &(struct perf_event_attr){.size = sizeof(struct perf_event_attr),
         .type = PERF_TYPE_SOFTWARE, .exclude_kernel = 1}, 0, -1, -1, 0));
    MAKE(mq_open("/muninn-test", O_CREAT | O_RDWR, 0600, NULL));
    mq_unlink("/muninn-test");
    struct io_uring_params params = {0};
    MAKE(syscall(SYS_io_uring_setup, 4, &params));
    MAKE(syscall(428 /* open_tree */, AT_FDCWD, "/", 1));
    MAKE(syscall(430 /* fsopen */, "tmpfs", 0));
    MAKE(syscall(444 /* landlock_create_ruleset */, NULL, 0, 1));
    MAKE(syscall(447 /* memfd_secret */, 0));
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0;
    ioctl(master, TIOCSPTLCK, &zero);
    MAKE(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0abstract"};
    int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0);
    MAKE(bind(unix_socket, (struct sockaddr *)&name, sizeof(sa_family_t) + 9));
    MAKE(socket(AF_NETLINK, SOCK_RAW, 0));
    internet();
    messages();
    clones();
}

static void closes(void)
{
    int fd[12];
    for (int i = 0; i < 12; i++)
        fd[i] = open("/dev/null", O_RDONLY);
    close(fd[1]);
    close_range((unsigned)fd[3], (unsigned)fd[5], 0);
    close_range((unsigned)fd[6], (unsigned)fd[7], CLOSE_RANGE_CLOEXEC);
    close_range(9, 3, 0);
    dup2(fd[0], fd[8]);
    syscall(SYS_close, fd[9] | 1ull << 32); // the kernel sees 32 bits
    close(0);
    MAKE(open("/dev/zero", O_RDONLY));
    close(2);
}

__attribute__((noinline)) static int opens_it(void)
{
    return open("/dev/null", O_RDONLY);
}

__attribute__((noinline)) static void closes_it(int fd)
{
    close(fd);
}

__attribute__((noinline)) static void closes_it_again(int fd)
{
    close(fd);
}

static void bad_uses(void)
{
    char byte;
    int fd = opens_it();
    closes_it(fd);
    closes_it_again(fd);
    close_range((unsigned)fd, (unsigned)fd, 0);     // once more
    close_range((unsigned)fd, (unsigned)fd + 1, 0); // whatever is open there
    MAKE(read(fd, &byte, 1));   // closed
    MAKE(write(77, &byte, 1));  // never open
    close(78);
    close(-1);
    MAKE(read(-1, &byte, 1));
    MAKE(openat(79, "relative", O_RDONLY));
    MAKE(openat(79, "/dev/null", O_RDONLY)); // absolute: no harm
    MAKE(dup2(80, 81));
    int write_only = open("/dev/null", O_WRONLY);
    MAKE(read(write_only, &byte, 1)); // EBADF, but open
    MAKE(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void sweep(void)
{
    for (int fd = 20; fd < 30; fd++)
        MAKE(dup2(0, fd));
    close(24);
    close(26);
    for (int fd = 20; fd < 1024; fd++)
        close(fd); // all of it one sweep, which begins well
    for (int fd = 40; fd >= 20; fd--)
        close(fd); // and one that does not
}

// Threads that open and close as fast as they can: numbers go from one to the other.
static void *churn(void *arg)
{
    for (int i = 0; i < 300; i++) {
        int fd = open("/dev/null", O_RDONLY), pair[2];
        MAKE(pipe(pair));
        close(fd);
        close_range((unsigned)pair[0], (unsigned)pair[0], 0);
        close(pair[1]);
    }
    return arg;
}

static void on_alarm(int sig)
{
    (void)sig;
    close(open("/dev/zero", O_RDONLY));
}

static void race(void)
{
    pthread_t threads[4];
    signal(SIGALRM, on_alarm);
    ualarm(300, 300);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ualarm(0, 0);
}

// The children of fork and vfork close what is the parent's, in tables of their own.
static void children(void)
{
    int fd = open("/dev/null", O_RDONLY);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        MAKE(open("/dev/zero", O_RDONLY));
        MAKE(open("/dev/zero", O_RDONLY));
        list_open();
        exit(0);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0) {
        close(fd);
        close(fd);
        MAKE(open("/dev/zero", O_RDONLY));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    char *argv[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, fd);
    if (posix_spawnp(&child, "true", &actions, NULL, argv, argv + 1) == 0)
        waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "every"))
        every_call();
    else if (!strcmp(mode, "closes"))
        closes();
    else if (!strcmp(mode, "bad"))
        bad_uses();
    else if (!strcmp(mode, "sweep"))
        sweep();
    else if (!strcmp(mode, "race"))
        race();
    else if (!strcmp(mode, "children"))
        children();
    else if (!strcmp(mode, "exec")) {
        MAKE(open("/dev/null", O_RDONLY | O_CLOEXEC));
        MAKE(open("/dev/null", O_RDONLY));
        execl("/proc/self/exe", argv[0], "none", NULL);
    } else if (!strcmp(mode, "kill")) {
        MAKE(open("/dev/null", O_RDONLY));
        list_open();
        raise(SIGTERM);
    }
    list_open();
    return 0;
}
