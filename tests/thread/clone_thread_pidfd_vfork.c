// SPDX-License-Identifier: MIT
// BUILD: -O1
// STRESS: tiny-blocks
// STRESS: signals
//
// Threads made with CLONE_PIDFD (a descriptor of one thread) and with CLONE_VFORK (the parent sleeps
// until the thread ends), by clone and clone3, with and without a shared table of descriptors.
#include "guest.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#define THREAD (CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_SYSVSEM)

static char stack[65536] __attribute__((aligned(16)));
static volatile int done, tid, go, in_child, signals;
static int pidfd;

static void on_usr1(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    signals++;
}

__attribute__((used)) static void body(void)
{
    struct timespec t = {0, 30 * 1000 * 1000};
    in_child = fcntl(pidfd, F_GETFD) >= 0;
    if (go == 2)
        syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_getpid), SIGUSR1);
    syscall(SYS_nanosleep, &t, NULL);
    while (!go)
        ;
    done = 1;
}

long start(long flags, void *top, int *parent, volatile int *child);
long start3(struct clone_args *args, size_t size);
__asm__(".text\nstart:\n"
        "    mov %rcx, %r10\n    mov $56, %eax\n    jmp 1f\n"
        "start3:\n    mov $435, %eax\n"
        "1:  syscall\n    test %eax, %eax\n    jz 2f\n    ret\n"
        "2:  xor %ebp, %ebp\n    call body\n"
        "    xor %edi, %edi\n    mov $60, %eax\n    syscall\n    ud2\n");

static long make(bool three, long flags)
{
    done = 0;
    pidfd = -1;
    tid = -1;
    if (!three)
        return start(flags, stack + sizeof stack - 64, &pidfd, &tid);
    struct clone_args args = {
        .flags = flags, .pidfd = (uint64_t)&pidfd, .child_tid = (uint64_t)&tid,
        .stack = (uint64_t)stack, .stack_size = sizeof stack - 64,
    };
    return start3(&args, sizeof args);
}

static void test_pidfd(bool three, long files)
{
    go = 0;
    long r = make(three, THREAD | files | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
    say("clone%s: %s, pidfd %s, cloexec %d\n", three ? "3" : "", r > 0 ? "a tid" : "failed",
        pidfd >= 0 ? "given" : "missing", fcntl(pidfd, F_GETFD));
    struct pollfd entry = {pidfd, POLLIN, 0};
    SHOW(poll(&entry, 1, 60));
    go = 1;
    SHOW(poll(&entry, 1, 60000));
    say("done %d, child's table has it: %d\n", done, in_child);
    SHOW(close(pidfd));
    for (int i = 0; i < 60000 && tid; i++)
        usleep(1000);
}

static void test_vfork(bool three, long more)
{
    go = 2;
    signals = 0;
    long r = make(three, THREAD | CLONE_FILES | CLONE_VFORK | CLONE_CHILD_SETTID |
                             CLONE_CHILD_CLEARTID | more);
    int after = done;
    say("clone%s: %s, done on return %d, tid cleared %d, signal %d\n", three ? "3" : "",
        r > 0 ? "a tid" : "failed", after, tid == 0, signals);
    if (more & CLONE_PIDFD)
        SHOW(close(pidfd));
}

int main(void)
{
    on_signal(SIGUSR1, on_usr1, 0);
    test_pidfd(false, CLONE_FILES);
    test_pidfd(true, CLONE_FILES);
    test_pidfd(true, 0);
    test_vfork(false, 0);
    test_vfork(true, 0);
    test_vfork(true, CLONE_PIDFD);
    SHOW(make(false, THREAD | CLONE_FILES | CLONE_PIDFD | CLONE_PARENT_SETTID));
    return 0;
}
