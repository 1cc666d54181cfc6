// SPDX-License-Identifier: MIT
//
// io_uring: requests and results that pass between the client and the kernel without a system
// call, through rings in memory that they share.
//
// The idea: a request is a system call of another form. uring_ops.def says which one, and from
// which members of the request its arguments come, so that the table of system calls describes
// what a request reads and writes, as it does for calls. A request is looked at when the client
// submits it; what it will write is kept, by its user_data, until its result stands in the
// completion ring. With IORING_SETUP_SQPOLL the kernel takes requests without being called: those
// that it has taken when they are noticed are not checked any more, but what they write is known.
//
// Completions are noticed at each system call, and when a tool asks (uring_has_news()). While
// `uring_is_watched` it has to ask before it calls undefined what it finds in memory.
//
// What must stay true
//   U1  A client that has seen a completion, by whatever means, finds it noticed here: the kernel
//       writes the result before the tail, and we read the tail when asked.
//   U2  Client memory is read only by guest_read(): rings may go at any time.
//   U3  The lock is taken last, and no finding is reported under it.
#ifndef MUNINN_ENGINE_URING_URING_H
#define MUNINN_ENGINE_URING_URING_H

#include "engine/syscall/syscall.h"

// Whether there are requests under way whose memory is not marked yet, or rings from which the
// kernel takes requests by itself. Read without a lock.
extern u32 uring_is_watched;

// A system call of the client: `check` is told what requests read and may write.
void uring_before(u64 nr, const u64 args[6], SyscallRangeFn check, void *arg);
// And its end: `wrote` is told what completed requests have written.
void uring_after(u64 nr, const u64 args[6], i64 result, SyscallRangeFn wrote, void *arg);

// Whether something was completed, or taken, since the last look. Callable from the cache.
bool uring_has_news(void);
void uring_settle(SyscallRangeFn wrote, void *arg);

void uring_fork_prepare(void);
void uring_fork_done(void);

#endif
