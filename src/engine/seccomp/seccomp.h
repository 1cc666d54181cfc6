// SPDX-License-Identifier: MIT
//
// The client's seccomp filters. The engine makes system calls of its own, which a filter of the
// client's must not judge. So the engine judges the client's calls itself, before it performs
// them, by the client's own number, arguments and program counter. docs/design/seccomp.md has
// the reasons.
//
// What must stay true
//   P1  For every filter of a thread the kernel has one in the same place that
//       allows everything (its place-holder). It keeps the books for us: the right
//       to install, no_new_privs, TSYNC, the Seccomp lines of /proc/PID/status.
//   P2  A program that is executed and not followed runs under the client's own
//       filters in the kernel, whole and without a test for the engine's addresses.
//       Only the place-holder of a filter with a listener has such a test, since
//       only the kernel can ask the listener.
//   P3  Filters are immutable and are never freed; equal ones are made once.
#ifndef MUNINN_ENGINE_SECCOMP_SECCOMP_H
#define MUNINN_ENGINE_SECCOMP_SECCOMP_H

#include "base/types.h"
#include "engine/ctx/ctx.h"

// Performs seccomp(2) or prctl(PR_SET_SECCOMP). False: the call sets no mode, or the kernel
// would refuse it; then the kernel must answer the call as it is.
bool seccomp_set_mode(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result);

// ------------------------------------------------------------------ judgement

typedef enum SeccompVerdict {
    SECCOMP_PERFORM,   // the call is performed
    SECCOMP_NOTIFY,    // the call goes to the kernel as it is, and the kernel asks the listener
    SECCOMP_ANSWERED,  // the call is not made: the client gets *ret_result
    SECCOMP_SIGNALLED, // the call is not made: a SIGSYS is pending, the registers stay as they are
    SECCOMP_AGAIN,     // another signal goes first; then the instruction must be repeated
} SeccompVerdict;

// Runs the filters of this thread on a call; ctx->pc is behind the instruction. Does not
// return if the filters kill. Only for threads that have filters.
SeccompVerdict seccomp_judge(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result);

static inline bool seccomp_is_on(const ThreadCtx *ctx)
{
    return __atomic_load_n(&ctx->seccomp.filter, __ATOMIC_ACQUIRE) || ctx->seccomp.strict;
}

// ----------------------------------------------------------------------- exec

// Gives the calling thread the filters of `ctx` in the kernel, for good: for a
// program that is about to be executed and not followed. 0 or -errno.
i64 seccomp_install_for_exec(const ThreadCtx *ctx);

// For a program that is followed: writes the filters into a file that stays open across
// execve, and returns its descriptor, or -errno. The new engine takes the filters over by
// seccomp_adopt(), which closes the descriptor.
int seccomp_across_exec(const ThreadCtx *ctx);
bool seccomp_adopt(ThreadCtx *ctx, int fd);

#endif
