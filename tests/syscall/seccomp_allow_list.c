// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[kill]: kill
// RUN[kill-thread]: kill-thread
// RUN[errno]: errno
// RUN[trap]: trap
// RUN[trap-blocked]: trap-blocked
// RUN[trap-ignored]: trap-ignored
// RUN[trace]: trace
// RUN[log]: log
// RUN[unknown]: unknown
// RUN[survive]: survive
// MUNINN: --tool=none
// MUNINN: --tool=count --log-file=/dev/null
// STRESS: tiny-blocks
// STRESS: signals
//
// An allow-list of three calls: what is on it works, new code and new pages included; what is
// not meets the filter's action. Nothing that the engine does for itself may: a client that keeps to
// its list survives one that kills, through faults, handlers and code that it has not run before.
#include "filter.h"
#include <linux/audit.h>
#include <ucontext.h>

static void on_trap(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    say("signal %d code %d errno %d syscall %d arch %x rax %lld\n", sig, info->si_code,
        info->si_errno, info->si_syscall, info->si_arch, (long long)uc->uc_mcontext.gregs[REG_RAX]);
    CHECK((uintptr_t)info->si_call_addr == (uintptr_t)uc->uc_mcontext.gregs[REG_RIP]);
    CHECK(((uint8_t *)info->si_call_addr)[-2] == 0x0f && ((uint8_t *)info->si_call_addr)[-1] == 5);
    uc->uc_mcontext.gregs[REG_RAX] = -EXDEV;
}

static const struct {
    const char *name;
    uint32_t action;
} actions[] = {
    {"kill", SECCOMP_RET_KILL_PROCESS},         {"kill-thread", SECCOMP_RET_KILL_THREAD},
    {"errno", SECCOMP_RET_ERRNO | EBUSY},       {"trap", SECCOMP_RET_TRAP | 77},
    {"trap-blocked", SECCOMP_RET_TRAP},         {"trap-ignored", SECCOMP_RET_TRAP},
    {"trace", SECCOMP_RET_TRACE | 5},           {"log", SECCOMP_RET_LOG},
    {"unknown", 0x12340000},                    {"survive", SECCOMP_RET_KILL_PROCESS},
};

// Code that has not run before, and page faults on memory that has not been touched.
__attribute__((noinline)) static int much_code(int n)
{
    static char pages[1 << 20];
    int sum = 0;

    for (int i = 0; i < n; i++) {
        pages[i * 4096 % sizeof pages] = (char)i;
        switch (i % 7) {
        case 0: sum += i; break;
        case 1: sum ^= i << 3; break;
        case 2: sum -= i * i; break;
        case 3: sum += pages[i]; break;
        case 4: sum *= 3; break;
        default: sum++;
        }
    }
    return sum;
}

static void on_illegal(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    CHECK(sig == SIGILL && info->si_code == ILL_ILLOPN);
    uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static void survive(void)
{
    for (int i = 0; i < 100; i++)
        __asm__ volatile("ud2" ::: "memory");
    say("more code %d\n", much_code(3000));
    syscall(SYS_exit_group, 5);
}

static void in_child(const char *name, uint32_t action)
{
    const int *calls = CALLS(SYS_write, SYS_exit_group, SYS_rt_sigreturn);

    if (name[4] == '-' && name[5] == 'i')
        signal(SIGSYS, SIG_IGN);
    else
        on_signal(SIGSYS, on_trap, 0);
    if (name[4] == '-' && name[5] == 'b')
        block_signal(SIG_BLOCK, SIGSYS);
    on_signal(SIGILL, on_illegal, 0);
    no_new_privileges();
    CHECK(filter_install(calls, SECCOMP_RET_ALLOW, action, 0) == 0);
    say("installed\n");
    say("code %d\n", much_code(1000));
    if (strcmp(name, "survive") == 0)
        survive();
    long result = syscall(SYS_getppid);
    say("getppid %s\n", result > 0 ? "works" : error_name(errno));
    syscall(SYS_exit_group, 3);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(argv[1], actions[i].name) != 0)
            continue;
        pid_t child = fork();
        if (child == 0)
            in_child(argv[1], actions[i].action);
        wait_and_show("child", child);
    }
    return 0;
}
