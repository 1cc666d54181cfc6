// SPDX-License-Identifier: MIT
//
// Records of threads, and the list of the leaving ones, whose memory waits until the kernel has let
// go of it.
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"
#include "engine/xstate/xstate.h"

#define STACK_BYTES (256 * KiB)
#define XSAVE_ALIGN 64

Lock thread_lock;

static ThreadRecord *leaving; // thread_lock

static u64 head_bytes(void)
{
    return PAGE_UP(sizeof(ThreadRecord) + XSAVE_ALIGN + xstate_size());
}

static void lay_out(ThreadRecord *record)
{
    u8 *base = (u8 *)record;

    record->xsave = base + ((sizeof(*record) + XSAVE_ALIGN - 1) & ~(u64)(XSAVE_ALIGN - 1));
    record->stack = base + head_bytes() + PAGE_SIZE;
    record->stack_size = STACK_BYTES;
}

static ThreadRecord *record_map(void)
{
    u64 head = head_bytes();
    u64 bytes = head + PAGE_SIZE + STACK_BYTES;
    u8 *base = pages_reserve(bytes);

    if (!base)
        return NULL;
    if (!pages_open(base, head) || !pages_open(base + head + PAGE_SIZE, STACK_BYTES)) {
        pages_unmap(base, bytes);
        return NULL;
    }
    return (ThreadRecord *)base;
}

// The caller may be a process that borrows this memory, hence the thread's own pid.
static bool is_gone(const ThreadRecord *record)
{
    return record->tid == 0 ||
           raw_syscall3(SYS_tgkill, (u64)record->pid, (u64)record->tid, 0) == -ESRCH;
}

// The kernel has given `tid` to a new thread: whoever had it before is gone, though
// is_gone() would deny that for as long as the new one lives.
void record_tid_is_taken(i32 tid)
{
    for (ThreadRecord *record = leaving; record; record = record->next) {
        if (record->tid == tid)
            record->tid = 0;
    }
}

static ThreadRecord *record_recycle(void)
{
    for (ThreadRecord **link = &leaving; *link; link = &(*link)->next) {
        ThreadRecord *record = *link;
        if (!is_gone(record))
            continue;
        *link = record->next;
        return record;
    }
    return NULL;
}

ThreadRecord *record_new(void)
{
    ThreadRecord *record = record_recycle();

    if (!record)
        record = record_map();
    if (!record)
        return NULL;
    memset(record, 0, sizeof(*record));
    lay_out(record);
    return record;
}

void record_discard(ThreadRecord *record)
{
    record->tid = 0;
    record_leave(record);
}

void record_leave(ThreadRecord *record)
{
    record->pid = (i32)raw_syscall0(SYS_getpid);
    record->next = leaving;
    leaving = record;
}

void record_wait_for_leaving(void)
{
    for (ThreadRecord *record = leaving; record; record = record->next) {
        while (!is_gone(record))
            raw_syscall0(SYS_sched_yield);
        record->tid = 0;
    }
}

// The main thread runs on the kernel's stack; its record only needs the head.
bool thread_init_main(ThreadCtx *ctx)
{
    ThreadRecord *record = pages_map(head_bytes());

    if (!record)
        return false;
    lay_out(record);
    record->stack = NULL;
    record->stack_size = 0;
    record->live.ctx = ctx;
    ctx->live = &record->live;
    record->tid = (i32)raw_syscall0(SYS_gettid);
    ctx->gateway.self = ctx;
    ctx->thread.tid = record->tid;
    lock_set_owner((u32)ctx->thread.tid);
    ctx->thread.record = record;
    ctx->xsave = record->xsave;
    ctx->xsave_size = xstate_size();
    xstate_reset(ctx->xsave);
    if (!signal_thread_init(ctx))
        return false;
    signal_adopt_process(ctx);
    ctx_live_add(ctx->live);
    return true;
}
