// SPDX-License-Identifier: MIT
//
// Between the files of fdtrack/.
#ifndef MUNINN_ENGINE_FDTRACK_INTERNAL_H
#define MUNINN_ENGINE_FDTRACK_INTERNAL_H

#include "engine/fdtrack/fdtrack.h"

typedef enum FdState {
    FD_UNSEEN, // never open, or open unknown to us
    FD_OPEN,
    FD_CLOSING, // the thread `closer` is about to close it
    FD_CLOSED,
} FdState;

enum { FD_TEXT_MAX = 480, FD_SENTENCE_MAX = FD_TEXT_MAX + 96 };

typedef struct FdName {
    bool is_socket;
    u32 path;               // where in the text a path begins; 0: it has none
    char text[FD_TEXT_MAX]; // "file descriptor 3: /etc/passwd", as it last was
    u32 file;               // of what is no socket: where in the text the kernel's name begins
} FdName;

typedef struct FdRecord {
    u32 state; // FdState
    bool inherited;
    i32 closer;
    u64 sequence; // of opening: the greater, the younger
    u32 opened_at, closed_at; // contexts
    FdName name;
} FdRecord;

// --- records.c: all of them take the lock and copy.
void records_open(i32 fd, u32 context, bool inherited);
// If it is open, it is being closed by this thread now.
void records_closing(i32 fd, i32 closer, u32 context);
// Ends that: it is closed, or it still is open (undone).
void records_closed(i32 fd, i32 closer, bool undone);
void records_closed_range(u32 first, u32 last, u32 context);
bool records_get(i32 fd, FdRecord *ret_record); // false: unseen
// Numbers that are open, youngest first, in memory of pages_map(); NULL: no memory, or none.
i32 *records_list_open(size_t *ret_count, u64 *ret_bytes);
void records_lock(void);
void records_unlock(void);

// --- describe.c: of a descriptor that is open; text_format()'s rules.
void describe_fd(i32 fd, FdName *ret_name);
bool fd_is_open(i32 fd); // to the client

// --- calls.c
// Calls `fn` for each descriptor that the call has made; it returns the number that the client is
// to find, in its memory or in the result, which is returned.
typedef i32 FdFn(ThreadCtx *ctx, i32 fd);
i64 calls_for_each_new(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result, FdFn *fn);
// The descriptor that made the kernel refuse a call with EBADF. False: none that is an argument.
bool calls_find_bad(u64 nr, const u64 args[6], i32 *ret_fd);

#endif
