// SPDX-License-Identifier: MIT
//
// The descriptors of the engine inside the client's table. They live at high
// numbers, close on exec, and the client can neither see, use, close nor replace
// them: for it the numbers are free, and when it wants one of them, ours moves.
//
// What must stay true
//   F1  A hidden number is free in the client's eyes: calls that name it fail
//       with EBADF, calls that would be given it get it.
//   F2  Limits are read and written with the client's values only; where a hidden
//       descriptor needs room above them, they are raised for the moment of the dup.
//   F3  A hidden descriptor moves only while all threads share one table. After
//       unshare(CLONE_FILES) or in a vfork child it stays, and dup2() onto it is EBUSY.
#ifndef MUNINN_ENGINE_DESCRIPTORS_DESCRIPTORS_H
#define MUNINN_ENGINE_DESCRIPTORS_DESCRIPTORS_H

#include "engine/ctx/ctx.h"
#include "launch/options.h"

// Told the number a hidden descriptor has from now on, or -1: it had to be closed,
// because the client needs every number its limit allows.
typedef void DescriptorMoved(int fd);

// Duplicates `fd` to a hidden number and calls `moved` with it; the original stays
// open. Returns the hidden number, or -errno. `moved` is called again whenever the
// client takes the number, and may be NULL when nobody keeps it.
int descriptor_hide(int fd, DescriptorMoved *moved);
// Closes a hidden descriptor.
void descriptor_drop(int fd);
bool descriptor_is_hidden(int fd);
// Room for descriptors of ours where the client's limit leaves none, as far as the hard limit
// or our privileges allow (F2). True: the limit was raised, and is to be given back.
struct rlimit;
bool descriptors_make_room(struct rlimit *ret_limit);
void descriptors_give_room_back(const struct rlimit *limit);
u32 descriptors_count(void); // of hidden ones

// ------------------------------------------------------------------- the log

// Opens what --log-file or --log-fd name, hides it and gives its number to `use`
// (log_init): -1 when there is no standard error to write to. False when it cannot
// be opened: one line on descriptor 2 says why.
bool descriptors_open_log(const Options *options, DescriptorMoved *use);
// Around a fork, so that the child's table is that of one moment; and in the child,
// before its first line: a --log-file with %p in it is another file there.
void descriptors_fork_prepare(void);
void descriptors_fork_parent(void);
void descriptors_fork_child(void);
// For the engine that follows an execve: the log's descriptor, left open across
// it, to be named by --log-fd; descriptors_open_log() adopts it there. -1 without
// a log, or when the name of the log is another for a process that vfork has made. When the
// execve fails, descriptors_after_failed_exec() takes it back.
int descriptors_log_across_exec(bool is_other_process);
void descriptors_after_failed_exec(void);

// From now on not all threads share one table (F3).
void descriptors_table_is_split(void);

// -------------------------------------------------------- the client's calls

// The lowest hidden number, or INT32_MAX: what is below needs no further look.
extern i32 descriptors_lowest;

// True when the call names a hidden descriptor where it needs an open one: EBADF.
bool descriptors_refuse(u64 nr, const u64 args[6]);
// Looks at the result of a call that makes a descriptor. True when it failed only
// because of ours, which have moved: make the call again.
bool descriptors_settle(u64 nr, const u64 args[6], i64 *result);

// poll or ppoll, made by `perform` with an array in which hidden numbers are invalid ones.
i64 descriptors_poll(ThreadCtx *ctx, const u64 args[6],
                     i64 (*perform)(ThreadCtx *ctx, const u64 args[6]));

i64 sys_close(ThreadCtx *ctx, const u64 args[6]);
i64 sys_dup2(ThreadCtx *ctx, const u64 args[6]);
i64 sys_dup3(ThreadCtx *ctx, const u64 args[6]);
i64 sys_close_range(ThreadCtx *ctx, const u64 args[6]);
i64 sys_unshare(ThreadCtx *ctx, const u64 args[6]);

#endif
