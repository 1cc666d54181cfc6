// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// RUN[exec]: exec
// RUN[path]: path
// RUN[no-exec]: no-exec
// RUN[not-a-program]: not-a-program
// RUN[spawn]: spawn
// RUN[privileged]: privileged
// RUN[thread]: thread
// RUN[narrow]: narrow
// RUN[signal]: signal
// MUNINN: --trace-children=no
// MUNINN: --trace-children=yes
//
// Filters hold in the program that is executed, whether it is followed or not; an execve that
// fails leaves the caller as it was; mask, ignored signals and death signal pass on.
#include "filter.h"
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/time.h>

// Enough for a program to start and look at itself.
#define NEEDED \
    SYS_read, SYS_write, SYS_open, SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_mmap, \
        SYS_mprotect, SYS_munmap, SYS_brk, SYS_pread64, SYS_access, SYS_execve, SYS_arch_prctl, \
        SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_prlimit64, SYS_getrandom, \
        SYS_exit_group, SYS_exit, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_prctl, SYS_wait4, \
        SYS_clone, SYS_clone3, SYS_futex, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_rt_sigreturn, \
        SYS_madvise, SYS_readlink, SYS_sysinfo, SYS_getppid

static void look(void)
{
    sigset_t mask;
    int death = 0;

    SHOW(syscall(SYS_getppid));
    SHOW(prctl(PR_GET_SECCOMP));
    CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
    for (int sig = 1; sig < 32; sig++)
        if (sigismember(&mask, sig))
            say("blocked %d\n", sig);
    struct sigaction action;
    CHECK(sigaction(SIGUSR2, NULL, &action) == 0);
    say("ignored %d\n", action.sa_handler == SIG_IGN);
    CHECK(prctl(PR_GET_PDEATHSIG, &death) == 0);
    say("death signal %d\n", death);
    _exit(6);
}

static void install(uint32_t otherwise)
{
    CHECK(filter_install(CALLS(NEEDED), SECCOMP_RET_ALLOW, otherwise, 0) == 0);
    struct sock_fprog second = filter_program(CALLS(SYS_getppid), SECCOMP_RET_ERRNO | EXDEV,
                                              SECCOMP_RET_ALLOW);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &second) == 0);
}

static char own_path[4096];
static char *own_argv[] = {own_path, "look", NULL};
extern char **environ;

static void *exec_from_thread(void *unused)
{
    execve(own_path, own_argv, environ);
    say("FAIL not reached\n");
    return unused;
}

static volatile sig_atomic_t handled;

static void on_alarm(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    handled++;
}

// Handlers run while an execve fails again and again; nothing else is different afterwards.
static void exec_among_signals(void)
{
    int failed = 0;

    install(SECCOMP_RET_ERRNO | EBUSY);
    while (handled < 100)
        failed += execve("seccomp_exec.text", own_argv, environ) == -1;
    CHECK(failed > 0);
    say("handled\n");
    look();
}

static void in_child(const char *what)
{
    char *missing[] = {"nothing", NULL}, *argv[] = {"x", NULL};

    block_signal(SIG_BLOCK, SIGUSR1);
    signal(SIGUSR2, SIG_IGN);
    CHECK(prctl(PR_SET_PDEATHSIG, SIGWINCH) == 0);
    if (what[0] != 'p' || what[1] != 'r')
        no_new_privileges();
    if (strcmp(what, "no-exec") == 0) {
        CHECK(filter_install(CALLS(SYS_execve), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW, 0)
              == 0);
        SHOW(execve(own_path, own_argv, environ));
        _exit(0);
    }
    if (strcmp(what, "signal") == 0) {
        const struct itimerval often = {{0, 300}, {0, 300}};
        on_signal(SIGALRM, on_alarm, 0);
        CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
        exec_among_signals();
    }
    // What is not on the list kills: the engine lives on what is not, here and in the new program.
    install(strcmp(what, "narrow") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EBUSY);
    if (strcmp(what, "path") == 0) {
        SHOW(execve("/nowhere/nothing", missing, environ));
        SHOW(execve("/etc/passwd", argv, environ));
        SHOW(execve("/etc", argv, environ));
        SHOW(syscall(SYS_execve, 8, argv, environ));
        SHOW(syscall(SYS_execve, own_path, 8, environ));
    }
    if (strcmp(what, "not-a-program") == 0) {
        for (int i = 0; i < 3; i++)
            SHOW(execve("seccomp_exec.text", argv, environ));
    }
    if (strcmp(what, "spawn") == 0) {
        pid_t child;
        SHOW(posix_spawn(&child, "/nowhere/nothing", NULL, NULL, argv, environ));
        for (int i = 0; i < 3; i++) {
            CHECK(posix_spawn(&child, own_path, NULL, NULL, own_argv, environ) == 0);
            wait_and_show("spawned", child);
        }
    }
    if (strcmp(what, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exec_from_thread, NULL);
        pthread_join(thread, NULL);
    }
    execve(own_path, own_argv, environ);
    say("FAIL %s\n", error_name(errno));
    _exit(9);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    if (strcmp(argv[1], "look") == 0)
        look();
    CHECK(readlink("/proc/self/exe", own_path, sizeof own_path - 1) > 0);
    int fd = open("seccomp_exec.text", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    CHECK(fd >= 0 && write(fd, "neither ELF nor a script\n", 25) == 25 && close(fd) == 0);
    pid_t child = fork();
    if (child == 0)
        in_child(argv[1]);
    wait_and_show("child", child);
    return 0;
}
