// SPDX-License-Identifier: MIT
//
// What the filters say about a call, and what that means for the thread.
#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/raw_syscall.h"
#include "engine/seccomp/seccomp_internal.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread.h"

#define ERRNO_MAX 4095

u32 filters_run(const SeccompFilter *newest, const struct seccomp_data *data,
                const SeccompFilter **ret_match)
{
    u32 strictest = SECCOMP_RET_ALLOW;

    *ret_match = NULL;
    for (const SeccompFilter *f = newest; f; f = f->older) {
        u32 says = program_run(f->insns, data);
        // The values of the actions are in the order of their strictness, as signed numbers.
        if ((i32)(says & SECCOMP_RET_ACTION_FULL) < (i32)(strictest & SECCOMP_RET_ACTION_FULL)) {
            strictest = says;
            *ret_match = f;
        }
    }
    return strictest;
}

// ------------------------------------------------------------------------ death

// The thread has left everything of ours; the kernel ends it, and with it the
// process if it was the last, as it would have done by itself.
static void end_by_filter(int sig)
{
    const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD);

    if (sig == SIGKILL)
        raw_syscall2(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    raw_syscall4(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0);
    install_in_kernel(&kill, 1, 0, true);
    for (;;)
        raw_syscall0(SYS_getpid);
}

// A thread that is the only one takes the process with it.
static _Noreturn void kill_client(ThreadCtx *ctx, const siginfo_t *info, bool whole_process)
{
    if (info->si_signo == SIGSYS && (whole_process || ctx_is_only(ctx)))
        signal_die(info);
    thread_end_by(ctx, info, end_by_filter);
}

static siginfo_t sigsys_info(const struct seccomp_data *data, u32 says)
{
    siginfo_t info;

    memset(&info, 0, sizeof(info));
    info.si_signo = SIGSYS;
    info.si_code = 1; // SYS_SECCOMP
    info.si_errno = (int)(says & SECCOMP_RET_DATA);
    info.si_call_addr = (void *)data->instruction_pointer;
    info.si_syscall = data->nr;
    info.si_arch = AUDIT_ARCH_X86_64;
    return info;
}

// ------------------------------------------------------------------- judgement

static void judge_strictly(ThreadCtx *ctx, u64 nr)
{
    const siginfo_t info = { .si_signo = SIGKILL };

    if (nr != SYS_read && nr != SYS_write && nr != SYS_exit && nr != SYS_rt_sigreturn)
        kill_client(ctx, &info, false);
}

static SeccompVerdict answer(i64 result, i64 *ret_result)
{
    *ret_result = result;
    return SECCOMP_ANSWERED;
}

// A tracer's part in it happens only between a filter of the kernel's and the tracer, so
// a traced client gets the call that its tracer would most likely have let pass.
static SeccompVerdict trace(i64 *ret_result)
{
    return signal_is_traced ? SECCOMP_PERFORM : answer(-ENOSYS, ret_result);
}

SeccompVerdict seccomp_judge(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result)
{
    struct seccomp_data data = {
        .nr = (int)nr, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = ctx->pc,
    };
    const SeccompFilter *match;

    if (ctx->seccomp.strict) {
        judge_strictly(ctx, (u32)nr);
        return SECCOMP_PERFORM;
    }
    memcpy(data.args, args, sizeof(data.args));
    u32 says = filters_run(__atomic_load_n(&ctx->seccomp.filter, __ATOMIC_ACQUIRE), &data, &match);
    siginfo_t info = sigsys_info(&data, says);
    switch (says & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG: return SECCOMP_PERFORM;
    case SECCOMP_RET_TRACE: return trace(ret_result);
    case SECCOMP_RET_USER_NOTIF:
        return match->has_listener ? SECCOMP_NOTIFY : answer(-ENOSYS, ret_result);
    case SECCOMP_RET_ERRNO:
        return answer(-(i64)min_u64(says & SECCOMP_RET_DATA, ERRNO_MAX), ret_result);
    case SECCOMP_RET_TRAP:
        return signal_raise_by_call(ctx, &info) ? SECCOMP_SIGNALLED : SECCOMP_AGAIN;
    case SECCOMP_RET_KILL_THREAD: kill_client(ctx, &info, false);
    default: kill_client(ctx, &info, true);
    }
}
