// SPDX-License-Identifier: MIT
//
// From system calls to records, and from records to events; see fdtrack.h.
#include "engine/fdtrack/fdtrack.h"

#include <dirent.h>
#include <errno.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pages.h"
#include "base/text.h"
#include "engine/calltags/calltags.h"
#include "engine/fdtrack/fdtrack_internal.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/syscall/syscall.h"

enum { SYSCALL_BYTES = 2 };

void (*fdtrack_report)(ThreadCtx *ctx, const FdTrackEvent *event);
u32 fdtrack_mode = TRACK_FDS_NO;

// ------------------------------------------------------------------ the start

static void inherit(i32 fd)
{
    if (fd_is_open(fd))
        records_open(fd, 0, true);
}

void fdtrack_init(u32 mode)
{
    enum { TRIED_WITHOUT_PROC = 1024 };
    fdtrack_mode = mode;
    if (mode == TRACK_FDS_NO)
        return;
    DIR *listing = opendir("/proc/self/fd");
    if (!listing) {
        for (i32 fd = 0; fd < TRIED_WITHOUT_PROC; fd++)
            inherit(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        i32 fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(listing))
            inherit(fd);
    }
    closedir(listing);
}

// ------------------------------------------------------------------ the calls

// The `syscall` instruction is what the client is doing.
static u32 context_of(ThreadCtx *ctx)
{
    return calltags_thread_context(ctx, ctx->pc - SYSCALL_BYTES);
}

// D1. A close_range() with these arguments does not fail.
static bool is_closing_range(const u64 args[6])
{
    return (u32)args[0] <= (u32)args[1] && !((u32)args[2] & ~(u32)CLOSE_RANGE_UNSHARE);
}

static i32 note_new(ThreadCtx *ctx, i32 fd)
{
    if (fd_is_open(fd))
        records_open(fd, context_of(ctx), false);
    return fd;
}

// What a descriptor is, as far as the record knows.
static FdTrackEvent event_of(FdTrackKind kind, i32 fd, const FdName *name)
{
    return (FdTrackEvent){
        .kind = kind,
        .fd = fd,
        .socket = name->is_socket ? name->text : NULL,
        .file = name->file ? name->text + name->file : NULL,
        .path = name->path ? name->text + name->path : NULL,
    };
}

static void report_bad_close(ThreadCtx *ctx, i32 fd, const FdRecord *record)
{
    FdTrackEvent event = event_of(FD_TRACK_BAD_CLOSE, fd, &record->name);
    event.contexts[0] = context_of(ctx);
    event.contexts[1] = record->closed_at;
    event.contexts[2] = record->opened_at;
    fdtrack_report(ctx, &event);
}

// close_range() refuses no number. One number alone is meant, and was closed before; of more than
// one a program wants whatever is open there.
static void close_range_begins(ThreadCtx *ctx, const u64 args[6])
{
    u32 first = (u32)args[0], last = (u32)args[1];
    FdRecord record;
    if (first == last && !fd_is_open((i32)first) && records_get((i32)first, &record) &&
        record.state == FD_CLOSED)
        report_bad_close(ctx, (i32)first, &record);
    records_closed_range(first, last, context_of(ctx));
}

void fdtrack_before(ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    if (ctx->thread.vfork_depth)
        return; // D2
    if (nr == NR_close && fd_is_open((i32)args[0]))
        records_closing((i32)args[0], ctx->thread.tid, context_of(ctx));
    else if (nr == NR_close_range && is_closing_range(args))
        close_range_begins(ctx, args);
}

static void report_bad_use(ThreadCtx *ctx, u64 nr, i32 fd, const FdRecord *closed)
{
    char name[32];
    FdTrackEvent event = {
        .kind = FD_TRACK_BAD_USE,
        .fd = fd,
        .call = syscall_name(nr, name, sizeof(name)),
        .contexts = {context_of(ctx), closed ? closed->closed_at : 0,
                     closed ? closed->opened_at : 0},
    };
    fdtrack_report(ctx, &event);
}

// Programs that close every number there might be do no wrong: a close next to the number
// that the same place has closed just before belongs to such a sweep.
static bool continues_sweep(ThreadCtx *ctx, i32 fd)
{
    static __thread i32 last_fd;
    static __thread u32 last_context;
    u32 context = context_of(ctx);
    bool is_next = fd == last_fd + 1 || fd == last_fd - 1;
    bool continues = is_next && context && context == last_context;
    last_fd = fd;
    last_context = context;
    return continues;
}

static void judge_refusal(ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    FdRecord record;
    i32 fd;
    if (!calls_find_bad(nr, args, &fd))
        return;
    bool was_closed = records_get(fd, &record) && record.state == FD_CLOSED;
    if (nr == NR_close && was_closed)
        report_bad_close(ctx, fd, &record);
    else if (fdtrack_mode == TRACK_FDS_BAD || fdtrack_mode == TRACK_FDS_ALL ||
             (nr == NR_close && fd < 0)) // what a failed call has returned: no number to try
        report_bad_use(ctx, nr, fd, was_closed ? &record : NULL);
}

void fdtrack_after(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result)
{
    if (ctx->thread.vfork_depth)
        return; // D2
    if (nr == NR_close)
        records_closed((i32)args[0], ctx->thread.tid, result == GATEWAY_RESTART);
    if (result == GATEWAY_RESTART)
        return;
    bool is_sweep = nr == NR_close && continues_sweep(ctx, (i32)args[0]);
    if (result == -EBADF && !is_sweep)
        judge_refusal(ctx, nr, args);
    else if (result >= 0)
        calls_for_each_new(ctx, nr, args, result, note_new);
}

// -------------------------------------------------------------------- the end

static void report_summary(ThreadCtx *ctx, const i32 *numbers, size_t count)
{
    char sentence[FD_SENTENCE_MAX];
    size_t open = 0, standard = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_open = fd_is_open(numbers[i]);
        open += is_open;
        standard += is_open && numbers[i] <= STDERR_FILENO;
    }
    text_format(sentence, sizeof(sentence), "FILE DESCRIPTORS: %lu open (%lu std) at exit.", open,
                standard);
    fdtrack_report(ctx, &(FdTrackEvent){.kind = FD_TRACK_SUMMARY, .fd = -1, .text = sentence});
}

static void report_open(ThreadCtx *ctx, i32 fd)
{
    char sentence[FD_SENTENCE_MAX];
    FdName name;
    FdRecord record;
    if (!fd_is_open(fd) || !records_get(fd, &record))
        return;
    describe_fd(fd, &name);
    text_format(sentence, sizeof(sentence), "Open %s", name.text);
    FdTrackEvent event = event_of(FD_TRACK_NOT_CLOSED, fd, &name);
    event.text = sentence;
    event.inherited = record.inherited;
    event.contexts[0] = record.opened_at;
    fdtrack_report(ctx, &event);
}

void fdtrack_finish(ThreadCtx *ctx)
{
    size_t count;
    u64 bytes;
    if (fdtrack_mode != TRACK_FDS_YES && fdtrack_mode != TRACK_FDS_ALL)
        return;
    i32 *numbers = records_list_open(&count, &bytes);
    if (!numbers)
        return;
    report_summary(ctx, numbers, count);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] > STDERR_FILENO || fdtrack_mode == TRACK_FDS_ALL)
            report_open(ctx, numbers[i]);
    }
    pages_unmap(numbers, bytes);
}

void fdtrack_fork_prepare(void)
{
    records_lock();
}

void fdtrack_fork_done(void)
{
    records_unlock();
}
