// SPDX-License-Identifier: MIT
//
// The client's seccomp filters. Filters judge system calls, and the engine makes
// calls of its own that no filter of the client has heard of; so the engine judges
// the client's calls itself, before it performs them, on what the client meant:
// its number, its arguments, its program counter. docs/design/seccomp.md has the
// reasons.
//
// What must stay true
//   P1  For every filter of a thread the kernel has one in the same place that
//       allows everything (its place-holder). It keeps the books for us: the right
//       to install, no_new_privs, TSYNC, the Seccomp lines of /proc/PID/status.
//   P2  A program that is executed and not followed runs under the client's own
//       filters in the kernel, whole and without a test for the engine's addresses.
//       Only the place-holder of a filter with a listener has such a test: what its
//       listener is asked about is the one thing that it alone decides.
//   P3  Filters are immutable and are never freed; equal ones are made once.
#ifndef MUNINN_ENGINE_SECCOMP_SECCOMP_H
#define MUNINN_ENGINE_SECCOMP_SECCOMP_H

#include "base/types.h"
#include "engine/ctx/ctx.h"

// seccomp(2) or prctl(PR_SET_SECCOMP). False: it sets no mode, or not in a way that
// the kernel would accept; the kernel is to answer it as it is.
bool seccomp_set_mode(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result);

// ------------------------------------------------------------------ judgement

typedef enum SeccompVerdict {
    SECCOMP_PERFORM,   // the call is made
    SECCOMP_NOTIFY,    // it goes to the kernel as it is, which asks the listener
    SECCOMP_ANSWERED,  // it is not made: *ret_result is what the client gets
    SECCOMP_SIGNALLED, // it is not made: a SIGSYS is pending, the registers stay as they are
    SECCOMP_AGAIN,     // another signal goes first; the instruction is to be repeated
} SeccompVerdict;

// What the filters of this thread say about a call; ctx->pc is behind the instruction.
// Does not return if they kill. Only for threads that have filters.
SeccompVerdict seccomp_judge(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result);

static inline bool seccomp_is_on(const ThreadCtx *ctx)
{
    return __atomic_load_n(&ctx->seccomp.filter, __ATOMIC_ACQUIRE) || ctx->seccomp.strict;
}

// ----------------------------------------------------------------------- exec

// Gives the calling thread the filters of `ctx` in the kernel, for good: for a
// program that is about to be executed and not followed. 0 or -errno.
i64 seccomp_install_for_exec(const ThreadCtx *ctx);

// For a program that is followed: a descriptor of the filters that stays open across
// execve, or -errno. The engine that is started takes them over, and closes it.
int seccomp_across_exec(const ThreadCtx *ctx);
bool seccomp_adopt(ThreadCtx *ctx, int fd);

#endif
