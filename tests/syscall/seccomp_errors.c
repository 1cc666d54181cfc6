// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// Which programs seccomp takes, what stacked filters say together, and what can be seen of them.
#include "filter.h"
#include <fcntl.h>

#define TRY(...) \
    do { \
        struct sock_filter insns[] = {__VA_ARGS__}; \
        struct sock_fprog program = {sizeof insns / sizeof *insns, insns}; \
        SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)); \
        SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)); \
    } while (0)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void show_lines(void)
{
    char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);

    close(fd);
    CHECK(length > 0);
    text[length] = 0;
    char *line = strstr(text, "NoNewPrivs:");
    say("%.40s|\n", line ? line : "");
}

static void bad_programs(void)
{
    struct sock_fprog empty = {0, NULL}, unreadable = {3, (void *)16};

    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &empty));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &unreadable));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 20, &unreadable));
    SHOW(syscall(SYS_seccomp, 77, 0, NULL));
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));                    // does not end in a return
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ALLOW);            // outside of the data
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ALLOW);             // not aligned
    TRY(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), ALLOW);             // a byte
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW);             // indirect
    TRY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALLOW);
    TRY(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), ALLOW);
    TRY(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), ALLOW);
    TRY(BPF_STMT(BPF_LD | BPF_MEM, 3), ALLOW);                     // never written
    TRY(BPF_STMT(BPF_ST, 16), ALLOW);
    TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), ALLOW);      // behind the end
    TRY(BPF_STMT(BPF_JMP | BPF_JA, 1), ALLOW);
    TRY(BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), ALLOW);
    TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), BPF_STMT(BPF_ST, 1),
        BPF_STMT(BPF_LD | BPF_MEM, 1), ALLOW);                     // written on one way only
}

// Arithmetic on the arguments, the scratch memory, both halves of an argument.
static void computing_filter(void)
{
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 1, 0),
        ALLOW,
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ST, 5),
        BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), // 64 + 3 * upper half
        BPF_STMT(BPF_LDX | BPF_MEM, 5),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7f),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program = {sizeof insns / sizeof *insns, insns};

    SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    for (uint64_t i = 0; i < 5; i++) {
        errno = 0;
        syscall(SYS_lseek, 1, i * 0x300000007ull, 0);
        say("lseek %d\n", errno);
    }
}

static void stacked(void)
{
    const int *call = CALLS(SYS_getppid);

    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EBUSY, SECCOMP_RET_ALLOW, 0));
    SHOW(syscall(SYS_getppid));
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EXDEV, SECCOMP_RET_ALLOW, 0));
    SHOW(syscall(SYS_getppid)); // the newest of equals
    SHOW(filter_install(call, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_LOG));
    SHOW(syscall(SYS_getppid));
    SHOW(filter_install(CALLS(SYS_getpgrp), SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW, 0));
    SHOW(syscall(SYS_getpgrp)); // nobody listens
    SHOW(filter_install(CALLS(SYS_getegid), SECCOMP_RET_ERRNO | 5000, SECCOMP_RET_ALLOW, 0));
    say("getegid %ld\n", syscall(SYS_getegid)); // no error of libc's: as it is
    SHOW(filter_install(CALLS(SYS_getsid), SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW, 0));
    SHOW(syscall(SYS_getsid, 0));
    show_lines();
    SHOW(prctl(PR_GET_SECCOMP));
    pid_t child = fork();
    if (child == 0) {
        SHOW(syscall(SYS_getppid));
        show_lines();
        _exit(0);
    }
    wait_and_show("child", child);
    SHOW(filter_install(CALLS(SYS_prctl, SYS_seccomp), SECCOMP_RET_ERRNO | EPERM,
                        SECCOMP_RET_ALLOW, 0));
    SHOW(filter_install(call, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW, 0));
    SHOW(prctl(PR_GET_SECCOMP));
}

int main(void)
{
    uint32_t action = SECCOMP_RET_TRAP, nonsense = 0x55550000;

    show_lines();
    SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
    SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &nonsense));
    no_new_privileges();
    bad_programs();
    show_lines();
    computing_filter();
    stacked();
    return 0;
}
