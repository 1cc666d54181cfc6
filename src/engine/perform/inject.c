// SPDX-License-Identifier: MIT
#include "engine/perform/inject.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/log/log.h"
#include "engine/perform/inject_rules.h"
#include "engine/perform/perform.h"
#include "engine/syscall/syscall.h"
#include "engine/thread/thread.h"
#include "engine/trace/trace.h"

enum { RESTARTS_MAX = 4 };

// Handlers make calls of their own before the call that they interrupted comes again.
typedef struct Restart {
    GuestAddr pc, sp;
    const InjectRule *rule; // that held for the call, or NULL
} Restart;

bool inject_is_on;
u64 inject_count;
static InjectRule *rules;
static u32 rule_count;

// Of this thread: how often each call was met, by rule and number; NULL: not yet.
static __thread u32 *met;
static __thread Restart restarts[RESTARTS_MAX];
static __thread const InjectRule *current; // of the call that is being performed

// ----------------------------------------------------------------- counting

static void forget_counts(ThreadCtx *ctx)
{
    (void)ctx;
    free(met);
    met = NULL;
}

static const ThreadHooks hooks = {.end = forget_counts, .fork_child = forget_counts};

// Threads count for themselves, as those of strace's do. Without memory nothing is injected.
static u32 count_call(u32 rule, u64 nr)
{
    if (!met)
        met = calloc((size_t)rule_count * NR_LIMIT, sizeof(*met));
    return met ? ++met[rule * NR_LIMIT + nr] : 0;
}

static bool is_due(const InjectRule *rule, u32 number)
{
    if (number < rule->first || number > rule->last)
        return false;
    return rule->step ? (number - rule->first) % rule->step == 0 : number == rule->first;
}

static bool comes_again(const ThreadCtx *ctx)
{
    for (u32 i = 0; i < RESTARTS_MAX; i++) {
        if (restarts[i].pc == ctx->pc && restarts[i].sp == ctx->gpr[RSP]) {
            current = restarts[i].rule;
            restarts[i] = (Restart){0};
            return true;
        }
    }
    return false;
}

// The last rule that names a call is the one that holds, as with strace.
static const InjectRule *find_rule(u64 nr)
{
    const InjectRule *found = NULL;

    for (u32 i = 0; nr < NR_LIMIT && i < rule_count; i++) {
        if (rules[i].calls[nr / 64] >> nr % 64 & 1 && is_due(&rules[i], count_call(i, nr)))
            found = &rules[i];
    }
    return found;
}

// ------------------------------------------------------------------- faults

static void wait_for_ns(u64 ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (i64)(ns % 1000000000)};

    while (ns && raw_syscall4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (u64)&left, (u64)&left) ==
                     -EINTR)
        continue;
}

bool inject_enter(ThreadCtx *ctx, u64 nr, i64 *ret_result)
{
    current = NULL;
    if (comes_again(ctx))
        return false;
    current = find_rule(nr);
    if (!current)
        return false;
    __atomic_fetch_add(&inject_count, 1, __ATOMIC_RELAXED);
    if (UNLIKELY(trace_bits & TRACE_SYSCALLS))
        log_line("syscalls: %d has a fault injected", ctx->thread.tid);
    wait_for_ns(current->enter_ns);
    if (current->signal)
        raw_syscall3(SYS_tgkill, (u64)getpid(), (u64)ctx->thread.tid, (u64)current->signal);
    *ret_result = current->result;
    return current->is_faked;
}

static void expect_again(const ThreadCtx *ctx)
{
    static __thread u32 next;

    restarts[next++ % RESTARTS_MAX] = (Restart){ctx->pc, ctx->gpr[RSP], current};
}

void inject_leave(ThreadCtx *ctx, u64 nr, bool is_restarted)
{
    (void)nr;
    if (is_restarted)
        expect_again(ctx);
    else if (current)
        wait_for_ns(current->exit_ns);
}

void inject_init(u32 count, const char *const *texts, char *ret_error, size_t size)
{
    ret_error[0] = '\0';
    if (!count)
        return;
    rules = calloc(count, sizeof(*rules));
    if (!rules) {
        text_format(ret_error, size, "there is no memory");
        return;
    }
    for (u32 i = 0; i < count; i++) {
        if (!inject_parse(texts[i], &rules[i], ret_error, size))
            return;
    }
    rule_count = count;
    inject_is_on = true;
    thread_add_hooks(&hooks);
}
