// SPDX-License-Identifier: MIT
//
// See memo.h. There are some dozens of entries, so a list is searched.
#include <stdlib.h>
#include <string.h>

#include "inspect/http/memo.h"

struct MemoEntry {
    MemoEntry *older;
    void *object;
    MemoFreeFn *free_object;
    u64 bytes;
    u64 used_by; // the last call that asked for it
    char key[];
};

static void free_entry(Memo *memo, MemoEntry *entry)
{
    memo->bytes -= entry->bytes;
    entry->free_object(entry->object);
    free(entry);
}

static void trim(Memo *memo)
{
    u64 kept = 0;

    for (MemoEntry **link = &memo->newest; *link;) {
        MemoEntry *entry = *link;
        kept += entry->bytes;
        if (kept > MEMO_MAX_BYTES && entry->used_by != memo->call) {
            kept -= entry->bytes;
            *link = entry->older;
            free_entry(memo, entry);
        } else {
            link = &entry->older;
        }
    }
}

void memo_begin_call(Memo *memo)
{
    memo->call++;
    if (memo->bytes > MEMO_MAX_BYTES)
        trim(memo);
}

void *memo_get(Memo *memo, const char *key)
{
    for (MemoEntry **link = &memo->newest; *link; link = &(*link)->older) {
        MemoEntry *entry = *link;
        if (strcmp(entry->key, key) == 0) {
            *link = entry->older;
            entry->older = memo->newest;
            memo->newest = entry;
            entry->used_by = memo->call;
            return entry->object;
        }
    }
    return NULL;
}

void *memo_put(Memo *memo, const char *key, void *object, size_t bytes, MemoFreeFn *free_object)
{
    MemoEntry *entry = object ? malloc(sizeof(*entry) + strlen(key) + 1) : NULL;

    if (!entry) {
        if (object)
            free_object(object);
        return NULL;
    }
    *entry = (MemoEntry){memo->newest, object, free_object, bytes + sizeof(*entry), memo->call};
    strcpy(entry->key, key);
    memo->newest = entry;
    memo->bytes += entry->bytes;
    trim(memo);
    return object;
}

void memo_clear(Memo *memo)
{
    while (memo->newest) {
        MemoEntry *entry = memo->newest;
        memo->newest = entry->older;
        free_entry(memo, entry);
    }
}
