// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[here]: here
// RUN[fork]: fork
// RUN[exec]: exec
// STRESS: signals
//
// A filter with a listener: a supervisor answers calls of its child, with a value, an error, or by
// letting them pass; also calls of a grandchild, and of a program that the child executes.
#include "filter.h"
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>

static void send_descriptor(int socket, int fd)
{
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_descriptor(int socket)
{
    char space[CMSG_SPACE(sizeof(int))], byte;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    int fd = -1;

    CHECK(recvmsg(socket, &message, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void ask(void)
{
    struct utsname names;

    SHOW(syscall(SYS_getppid));
    SHOW(syscall(SYS_chroot, "/"));
    SHOW(uname(&names));
    say("system %s\n", names.sysname);
    SHOW(syscall(SYS_getpgid, 12345));
    _exit(3);
}

static void in_child(const char *what, int socket)
{
    const int *calls = CALLS(SYS_getppid, SYS_chroot, SYS_uname);

    no_new_privileges();
    long fd = filter_install(calls, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW,
                             SECCOMP_FILTER_FLAG_NEW_LISTENER);
    CHECK(fd >= 0);
    send_descriptor(socket, (int)fd);
    close((int)fd);
    CHECK(filter_install(CALLS(SYS_getpgid), SECCOMP_RET_ERRNO | EXDEV, SECCOMP_RET_ALLOW, 0) == 0);
    if (what[0] == 'e') {
        execl("/proc/self/exe", "seccomp_listener", "ask", NULL);
        say("FAIL not executed: %s\n", error_name(errno));
    }
    if (what[0] == 'f') {
        pid_t child = fork();
        if (child == 0)
            ask();
        wait_and_show("grandchild", child);
        _exit(0);
    }
    ask();
}

static void supervise(int listener)
{
    for (int i = 0; i < 3; i++) {
        struct seccomp_notif call = {0};
        struct seccomp_notif_resp response = {0};
        CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0);
        say("asked about %d, arch %x\n", call.data.nr, call.data.arch);
        response.id = call.id;
        if (call.data.nr == SYS_getppid)
            response.val = 4711;
        else if (call.data.nr == SYS_chroot)
            response.error = -ELOOP;
        else
            response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0);
    }
}

int main(int argc, char **argv)
{
    int ends[2];

    CHECK(argc == 2);
    if (strcmp(argv[1], "ask") == 0)
        ask();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0)
        in_child(argv[1], ends[0]);
    supervise(receive_descriptor(ends[1]));
    wait_and_show("child", child);
    return 0;
}
