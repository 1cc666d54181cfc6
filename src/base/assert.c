// SPDX-License-Identifier: MIT
//
// The last words of the process. Everything here must work on a broken heap,
// on any stack, in a raw fork child and with every signal blocked, hence the
// bare system calls.
#include "base/assert.h"

#include <linux/signal.h>
#include <sys/syscall.h>

#include "base/text.h"

PanicHook *panic_hook;

static i64 syscall4(i64 nr, u64 a, u64 b, u64 c, u64 d)
{
    register u64 r10 __asm__("r10") = d;
    i64 result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static void print_panic(const char *file, int line, const char *text)
{
    char message[512];
    size_t length = text_format(message, sizeof(message), "muninn: internal error: %s:%d: %s\n",
                                file, line, text);

    syscall4(SYS_write, 2, (u64)message, length, 0);
}

// A handler installed for SIGABRT is not ours to run, so the default action is
// restored first.
static _Noreturn void die_by_abort(void)
{
    const u64 default_action[4] = { 0 }; // the kernel's sigaction: SIG_DFL, no flags, no mask
    u64 unblock = 1ull << (SIGABRT - 1);

    syscall4(SYS_rt_sigaction, SIGABRT, (u64)default_action, 0, sizeof(u64));
    syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, (u64)&unblock, 0, sizeof(u64));
    i64 pid = syscall4(SYS_getpid, 0, 0, 0, 0);
    i64 tid = syscall4(SYS_gettid, 0, 0, 0, 0);
    syscall4(SYS_tgkill, (u64)pid, (u64)tid, SIGABRT, 0);
    for (;;)
        syscall4(SYS_exit_group, 134, 0, 0, 0);
}

void panic_at(const char *file, int line, const char *text)
{
    PanicHook *hook = __atomic_exchange_n(&panic_hook, NULL, __ATOMIC_ACQ_REL);

    if (hook)
        hook(file, line, text);
    else
        print_panic(file, line, text);
    die_by_abort();
}
