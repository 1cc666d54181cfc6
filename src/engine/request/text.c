// SPDX-License-Identifier: MIT
//
// What the client prints through requests, cut into lines. Like the incumbent, one
// line may be made by several requests: what has no newline yet waits here,
// one line for the whole process.
#include <string.h>
#include <unistd.h>

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"
#include "engine/log/log.h"
#include "engine/request/request_internal.h"

static void write_to_log(ThreadCtx *ctx, const char *text, u32 context);
void (*request_text_hook)(ThreadCtx *ctx, const char *text, u32 context) = write_to_log;

static Lock text_lock;
// Under the lock:
static char line[REQUEST_LINE_MAX + 1];
static size_t line_length;
static bool line_is_complete; // its newline has come, but whether a backtrace follows is not known

static void write_to_log(ThreadCtx *ctx, const char *text, u32 context)
{
    GuestAddr frames[12];
    (void)ctx;
    log_line("**%d** %s", (int)getpid(), text);
    size_t count = context ? context_frames(context, frames, ARRAY_LEN(frames)) : 0;
    for (size_t i = 0; i < count && i < ARRAY_LEN(frames); i++)
        log_line("==%d==    %s 0x%lx", (int)getpid(), i ? "by" : "at", frames[i]);
}

static void put_out(ThreadCtx *ctx, u32 context)
{
    line[line_length] = 0;
    line_length = 0;
    line_is_complete = false;
    request_text_hook(ctx, line, context);
}

static void put_character(char c, void *arg)
{
    ThreadCtx *ctx = arg;
    if (line_is_complete || line_length == REQUEST_LINE_MAX)
        put_out(ctx, 0);
    if (c == '\n')
        line_is_complete = true;
    else
        line[line_length++] = c;
}

size_t text_print(ThreadCtx *ctx, GuestAddr format, GuestAddr va_list_at, bool backtrace)
{
    u32 context = backtrace ? calltags_thread_context(ctx, ctx->pc) : 0;
    lock_acquire(&text_lock);
    size_t count = request_format(format, va_list_at, guest_read, put_character, ctx);
    if (line_is_complete || backtrace)
        put_out(ctx, context);
    lock_release(&text_lock);
    return count;
}

void request_text_flush(ThreadCtx *ctx)
{
    lock_acquire(&text_lock);
    if (line_length)
        put_out(ctx, 0);
    lock_release(&text_lock);
}

void text_fork_prepare(void)
{
    lock_acquire(&text_lock);
}

void text_fork_done(bool in_child)
{
    if (in_child)
        line_length = 0;
    lock_release(&text_lock);
}
