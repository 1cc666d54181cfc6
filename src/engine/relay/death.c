// SPDX-License-Identifier: MIT
//
// What the monitor is told of the signal that ends the process.
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/callstack/callstack.h"
#include "engine/relay/relay_internal.h"
#include "engine/thread/thread.h"

// The first word of the stack that can be read: where a stack has overflowed, its pointer lies
// below.
static GuestAddr readable_stack(u64 sp)
{
    enum { PAGES_BELOW = 64 };
    GuestAddr at = sp;
    u64 word;

    for (u32 i = 0; i < PAGES_BELOW && !guest_read(at, &word, sizeof(word)); i++)
        at = PAGE_DOWN(at) + PAGE_SIZE;
    return at;
}

// As much of the stack as fits into a record, up to where it can be read.
static void put_fatal_stack(WireProducer *producer, const ThreadCtx *ctx)
{
    enum { REGISTERS = 17, BEFORE = REGISTERS + 1, WORDS_MAX = 8000, STEP = 64 };
    static u64 words[WORDS_MAX];
    GuestAddr start = readable_stack(ctx->gpr[RSP]);
    size_t count = BEFORE;

    memcpy(words, ctx->gpr, (REGISTERS - 1) * sizeof(u64));
    words[REGISTERS - 1] = ctx->pc;
    words[REGISTERS] = start;
    while (count + STEP <= WORDS_MAX) {
        GuestAddr at = start + (count - BEFORE) * sizeof(u64);
        // Steps end where pages do, so that the last one of a stack is read whole.
        size_t step = min_u64(STEP, (PAGE_DOWN(at) + PAGE_SIZE - at + 7) / sizeof(u64));
        if (!guest_read(at, &words[count], step * sizeof(u64)))
            break;
        count += step;
    }
    wire_put_fatal_stack(producer, &(Wire_fatal_stack){{words, count}});
}

static u64 stack_limit(void)
{
    struct rlimit limit = {0};

    getrlimit(RLIMIT_STACK, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

void relay_fatal_signal(ThreadCtx *ctx, const siginfo_t *info, u32 context)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    WireProducer *producer = relay_is_on() ? relay_producer(ctx) : NULL;
    if (!producer)
        return;
    size_t count = context ? context_frames(context, frames, WIRE_FRAMES_MAX) : 0;
    u64 stack_bytes = 0;
    if (info->si_signo == SIGSEGV && info->si_code > 0)
        thread_overflowed_stack(ctx, (GuestAddr)info->si_addr, &stack_bytes);
    // Nobody has kept its calls, or they cannot be followed through a stack that is full.
    if (count <= 1 || stack_bytes) {
        put_fatal_stack(producer, ctx);
        count = 0;
    }
    wire_put_fatal_signal(producer, &(Wire_fatal_signal){
        .tid = ctx->relay.number,
        .signal = (u64)info->si_signo,
        .code = (u64)(i64)info->si_code,
        .address = (u64)info->si_addr,
        .stack_bytes = stack_bytes,
        .stack_limit = stack_limit(),
        .pcs = {frames, min_u64(count, WIRE_FRAMES_MAX)},
    });
}
