// SPDX-License-Identifier: MIT
//
// Runs a program that believes its RLIMIT_NOFILE to be 1073741816, as some containers set it, on a
// machine where it may not be set: a seccomp listener answers prlimit64 for it and for its children.
//
//     fake_nofile PROGRAM ARGUMENTS...
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rlimit limit = {1073741816, 1073741816};

static int install(void)
{
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_NOFILE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof insns / sizeof *insns, insns};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

// The table of descriptors is shared until the execve, so the listener is ours as well.
static void start(int answer, char **argv)
{
    int listener = install();

    if (write(answer, &listener, sizeof listener) != sizeof listener || listener < 0)
        _exit(125);
    execv(argv[1], argv + 1);
    _exit(124);
}

static void answer_one(int listener)
{
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp response = {0};
    char path[64];

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)call.pid);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    struct rlimit old = limit;
    response.id = call.id;
    if (call.data.args[2] &&
        pread(memory, &limit, sizeof limit, (off_t)call.data.args[2]) != sizeof limit)
        response.error = -EFAULT;
    if (call.data.args[3] &&
        pwrite(memory, &old, sizeof old, (off_t)call.data.args[3]) != sizeof old)
        response.error = -EFAULT;
    close(memory);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

int main(int argc, char **argv)
{
    int ends[2], listener = -1, status;

    if (argc < 2 || pipe2(ends, O_CLOEXEC) != 0)
        return 125;
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        start(ends[1], argv);
    if (read(ends[0], &listener, sizeof listener) != sizeof listener || listener < 0)
        return 125;
    for (;;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        if (poll(&ready, 1, 10) > 0 && (ready.revents & POLLIN))
            answer_one(listener);
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}
