// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[prctl]: prctl
// RUN[seccomp]: seccomp
// RUN[refused]: refused
// STRESS: signals
//
// Strict mode: read, write, exit and sigreturn; anything else kills with SIGKILL.
#include "filter.h"
#include <ucontext.h>

static void on_signal_ill(int sig, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    say("handler of %d\n", sig);
    extern char after_ud2[];
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (long long)after_ud2;
}

static long enter(const char *how)
{
    return how[0] == 'p' ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 99)
                         : syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
}

static void in_child(const char *how, bool ends_well, int pipe_end)
{
    char byte = 0;

    on_signal(SIGILL, on_signal_ill, 0);
    CHECK(enter(how) == 0);
    CHECK(read(pipe_end, &byte, 1) == 1);
    say("read %c\n", byte);
    __asm__ volatile("ud2\n.globl after_ud2\nafter_ud2:" ::: "memory");
    if (ends_well)
        syscall(SYS_exit, 5);
    syscall(SYS_getpid);
    say("not reached\n");
}

static void refused(void)
{
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, &errno));
    SHOW(prctl(PR_SET_SECCOMP, 3, 0));
    no_new_privileges();
    SHOW(filter_install(CALLS(SYS_getppid), SECCOMP_RET_ERRNO | 5, SECCOMP_RET_ALLOW, 0));
    SHOW(enter("prctl"));
    SHOW(enter("seccomp"));
    SHOW(prctl(PR_GET_SECCOMP));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    if (argv[1][0] == 'r') {
        refused();
        return 0;
    }
    for (int ends_well = 0; ends_well < 2; ends_well++) {
        int ends[2];
        CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
        pid_t child = fork();
        if (child == 0)
            in_child(argv[1], ends_well, ends[0]);
        wait_and_show("child", child);
    }
    return 0;
}
