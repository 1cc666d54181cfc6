// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[errno]: errno
// RUN[kill]: kill
// RUN[trap]: trap
//
// A seccomp filter in a child: a call refused with an error, one that kills, one that traps to a
// SIGSYS handler with the number and address of the call.
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void on_trap(int sig, siginfo_t *info, void *context)
{
    (void)context;
    say("signal %d code %d syscall %d arch %x address %d\n", sig, info->si_code, info->si_syscall,
        info->si_arch, info->si_call_addr != NULL);
}

static bool refuse_getppid(uint32_t action)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    uint32_t action = argv[1][0] == 'e' ? SECCOMP_RET_ERRNO | EBUSY
                      : argv[1][0] == 'k' ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_TRAP;
    pid_t child = fork();
    if (child == 0) {
        on_signal(SIGSYS, on_trap, 0);
        if (!refuse_getppid(action)) {
            say("no seccomp: %s\n", error_name(errno));
            _exit(0);
        }
        say("others still work %d\n", getpid() > 0);
        long result = syscall(SYS_getppid);
        if (argv[1][0] == 'e')
            say("refused: %ld %s\n", result, error_name(errno));
        _exit(3);
    }
    wait_and_show("child", child);
    return 0;
}
