// SPDX-License-Identifier: MIT
//
// A program that puts itself into a sandbox with libseccomp, as daemons do: an allow-list with
// conditions on arguments, violations reported by a SIGSYS handler, threads that share the filter,
// and a worker that is killed. With "export" it writes a filter for bwrap to its standard output.
#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const allowed[] = {
    "brk", "clone", "clone3", "close", "exit", "exit_group", "fork", "fstat", "futex", "getpid",
    "gettid", "madvise", "mprotect", "munmap", "newfstatat", "prctl", "read", "rseq",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield", "set_robust_list", "tgkill",
    "wait4", "write",
};

static void check(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-result));
        exit(1);
    }
}

static void enter(uint32_t otherwise)
{
    scmp_filter_ctx filter = seccomp_init(otherwise);

    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(allowed[i]), 0),
              allowed[i]);
    // Memory, but none that is writable and executable; sockets, but only of one family.
    check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_WRITE)),
          "mmap");
    check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, 0)),
          "mmap");
    check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                           SCMP_A0(SCMP_CMP_EQ, AF_UNIX)), "socket");
    check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EXDEV), SCMP_SYS(getppid), 0), "getppid");
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    check(seccomp_load(filter), "load");
    seccomp_release(filter);
}

static void report(int sig, siginfo_t *info, void *context)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, info->si_syscall);

    (void)context;
    printf("signal %d: %s is not allowed\n", sig, name);
    free(name);
}

static void *work(void *argument)
{
    char *memory = malloc(300000);

    memset(memory, 1, 300000);
    free(memory);
    socket(AF_INET, SOCK_STREAM, 0);
    return argument;
}

static void violate_in_child(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        enter(SCMP_ACT_KILL_PROCESS);
        getsid(0);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static int export_filter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EXDEV), SCMP_SYS(uname), 0), "uname");
    check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(mkdir), 0), "mkdir");
    return seccomp_export_bpf(filter, 1) != 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO};

    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return export_filter();
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGSYS, &action, NULL);
    printf("api %d\n", (int)seccomp_api_get() > 0);
    violate_in_child();
    enter(SCMP_ACT_TRAP);
    printf("getppid %d\n", getppid() == -1 && errno == EXDEV);
    printf("unix socket %d\n", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    printf("plain %d\n", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                              0) != MAP_FAILED);
    printf("executable %d\n", mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("all work done");
    return 7;
}
