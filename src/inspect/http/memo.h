// SPDX-License-Identifier: MIT
//
// Things that were computed from a recording and may be asked for again, by a key, within
// a budget of bytes. What the current call has used stays until the next one begins, so
// pointers into the memo are good for one call. Not thread-safe: the View's lock is around it.
#ifndef MUNINN_INSPECT_HTTP_MEMO_H
#define MUNINN_INSPECT_HTTP_MEMO_H

#include "base/types.h"

typedef void MemoFreeFn(void *object);

typedef struct MemoEntry MemoEntry;
typedef struct Memo {
    MemoEntry *newest; // in order of use
    u64 bytes;
    u64 call; // the number of the current call
} Memo;

enum { MEMO_MAX_BYTES = 96 << 20 };

void memo_begin_call(Memo *memo);
void *memo_get(Memo *memo, const char *key);
// Takes the object over, also when it fails: then it is freed, and NULL returned.
void *memo_put(Memo *memo, const char *key, void *object, size_t bytes, MemoFreeFn *free_object);
void memo_clear(Memo *memo);

#endif
