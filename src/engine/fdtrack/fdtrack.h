// SPDX-License-Identifier: MIT
//
// Tracked descriptors (--track-fds): for each descriptor of the client, where it was
// opened and where it was closed; descriptors that are closed twice, used
// without being open, or left open at the end.
//
// Which calls make descriptors the table of system calls says (SYS_NEW_FD); what it can
// not say (pairs, messages, ioctls) stands in calls.c. The kernel is the judge of
// what is open: a wrong use is one that it has refused with EBADF, and what it says is
// not open at the end is not listed. The records only remember how things came about.
//
// What must stay true
//   D1  A descriptor leaves the records before the kernel closes it, and enters them after
//       the kernel has made it: in between another thread may be given its number.
//   D2  The child of a vfork has a table of its own and its parent's memory: nothing is
//       recorded there.
//   D3  The records' lock is taken last: nothing is called that takes another, and no
//       client memory is touched under it.
#ifndef MUNINN_ENGINE_FDTRACK_FDTRACK_H
#define MUNINN_ENGINE_FDTRACK_FDTRACK_H

#include "engine/ctx/ctx.h"
#include "launch/options.h"

typedef enum FdTrackKind {
    FD_TRACK_BAD_CLOSE,  // closed again
    FD_TRACK_BAD_USE,    // of a number that is not open
    FD_TRACK_SUMMARY,    // how many are open at the end; before the list of them
    FD_TRACK_NOT_CLOSED, // one of the list
} FdTrackKind;

// Contexts are 0 where there is none: nothing was seen, or it came from the parent.
typedef struct FdTrackEvent {
    FdTrackKind kind;
    i32 fd;
    const char *text; // SUMMARY, and what is inherited: the whole sentence
    // Others: the socket in words, or what the kernel calls the file; its path if it has one; and
    // the call that used it. NULL where there is none.
    const char *socket, *file, *path, *call;
    bool inherited;   // NOT_CLOSED: the parent has opened it
    u32 contexts[3];  // NOT_CLOSED: opened. Others: now, closed, opened
} FdTrackEvent;

// Told of every event, outside all locks of this folder. Set before fdtrack_init().
extern void (*fdtrack_report)(ThreadCtx *ctx, const FdTrackEvent *event);

// One of TRACK_FDS_; while it is TRACK_FDS_NO nothing else here need be called.
extern u32 fdtrack_mode;

// Sets the mode and remembers what is open as inherited. After the engine's own
// descriptors are hidden, before the client runs.
void fdtrack_init(u32 mode);

// Around every system call of the client; result GATEWAY_RESTART: it was not made.
void fdtrack_before(ThreadCtx *ctx, u64 nr, const u64 args[6]);
void fdtrack_after(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result);

// --modify-fds, one of MODIFY_FDS_; while it is MODIFY_FDS_NO nothing is to be called. After a
// call, before fdtrack_after(): gives the descriptors that it has made other numbers, and returns
// the result that the client finds.
extern u32 fdtrack_numbers;
i64 fdtrack_renumber(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result);

// The end of the process: the summary and the list, newest first.
void fdtrack_finish(ThreadCtx *ctx);

void fdtrack_fork_prepare(void);
void fdtrack_fork_done(void);

#endif
