// SPDX-License-Identifier: MIT
//
// The last words of the process. Everything here must work on a broken heap,
// on any stack, in a raw fork child and with every signal blocked, hence the
// bare system calls.
#include "base/assert.h"

#include <linux/signal.h>

#include "base/raw_syscall.h"
#include "base/text.h"

PanicHook *panic_hook;

static void print_panic(const char *file, int line, const char *text)
{
    char message[512];
    size_t length = text_format(message, sizeof(message), "muninn: internal error: %s:%d: %s\n",
                                file, line, text);

    raw_syscall3(SYS_write, 2, (u64)message, length);
}

// A handler installed for SIGABRT is not ours to run, so the default action is
// restored first.
static _Noreturn void die_by_abort(void)
{
    const u64 default_action[4] = { 0 }; // the kernel's sigaction: SIG_DFL, no flags, no mask
    u64 unblock = 1ull << (SIGABRT - 1);

    raw_syscall4(SYS_rt_sigaction, SIGABRT, (u64)default_action, 0, sizeof(u64));
    raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, (u64)&unblock, 0, sizeof(u64));
    i64 pid = raw_syscall0(SYS_getpid);
    i64 tid = raw_syscall0(SYS_gettid);
    raw_syscall3(SYS_tgkill, (u64)pid, (u64)tid, SIGABRT);
    for (;;)
        raw_syscall1(SYS_exit_group, 134);
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
