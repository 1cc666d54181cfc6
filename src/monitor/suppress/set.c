// SPDX-License-Identifier: MIT
//
// The set as a container, its index, and files. The index is one sorted array
// of (tool and kind, entry), rebuilt when a match finds it stale: files are read
// before the first finding.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "monitor/suppress/entry.h"

// More than anybody writes, and enough to hold what /dev/zero says.
#define FILE_SIZE_MAX (256 * MiB)

SuppressSet *suppress_new(void)
{
    SuppressSet *set = calloc(1, sizeof(*set));

    ASSERT(set);
    vec_init(&set->entries, sizeof(Entry *));
    vec_init(&set->index, sizeof(IndexSlot));
    return set;
}

void suppress_free(SuppressSet *set)
{
    if (!set)
        return;
    vec_free(&set->entries);
    vec_free(&set->index);
    arena_free(&set->arena);
    arena_free(&set->scratch);
    free(set);
}

size_t suppress_count(const SuppressSet *set)
{
    return set->entries.count;
}

const Suppression *suppress_at(const SuppressSet *set, size_t index)
{
    const Entry *entry = *(Entry *const *)vec_at(&set->entries, index);

    return &entry->shown;
}

void suppress_reset(SuppressSet *set, size_t index)
{
    Entry *entry = *(Entry **)vec_at(&set->entries, index);

    entry->shown.used = entry->shown.leaked_bytes = entry->shown.leaked_blocks = 0;
}

// FNV-1a over both words. Case does not count in a tool: DRD calls itself drd.
u64 index_key(const char *tool, const char *kind)
{
    u64 hash = 0xcbf29ce484222325ull;

    for (; *tool; tool++) {
        u8 c = (u8)*tool;

        hash = (hash ^ (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c)) * 0x100000001b3ull;
    }
    hash = (hash ^ ':') * 0x100000001b3ull;
    for (; *kind; kind++)
        hash = (hash ^ (u8)*kind) * 0x100000001b3ull;
    return hash;
}

static int compare_slots(const void *left, const void *right)
{
    const IndexSlot *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->entry->order < b->entry->order ? -1 : a->entry->order > b->entry->order;
}

bool index_build(SuppressSet *set)
{
    if (set->indexed_count == set->entries.count)
        return true;
    vec_clear(&set->index);
    for (size_t i = 0; i < set->entries.count; i++) {
        Entry *entry = *(Entry **)vec_at(&set->entries, i);
        const char *tool = entry->tools;

        for (u32 t = 0; t < entry->tool_count && entry->location_count; t++) {
            IndexSlot slot = { index_key(tool, entry->kind), entry };

            if (!vec_push(&set->index, &slot))
                return false;
            tool += strlen(tool) + 1;
        }
    }
    if (set->index.count)
        qsort(set->index.data, set->index.count, sizeof(IndexSlot), compare_slots);
    set->indexed_count = set->entries.count;
    return true;
}

// -------------------------------------------------------------------- files

static bool say_failure(SuppressSet *set, const char *path, const char *why, const char **ret_error)
{
    size_t size = strlen(path) + strlen(why) + 64;
    char *message = arena_alloc(&set->arena, size, 1);

    if (message)
        snprintf(message, size, "%s: cannot read this suppression file: %s", path, why);
    *ret_error = message ? message : "out of memory";
    return false;
}

// The whole of a file whose size cannot be known before: it may be a pipe. 0 or -errno.
static int read_all(int fd, char **ret_text, size_t *ret_size)
{
    size_t size = 0, room = 64 * KiB;
    char *text = malloc(room);

    while (text) {
        ssize_t got = read(fd, text + size, room - size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int error = got < 0 ? -errno : 0;

            if (error)
                free(text);
            else
                *ret_text = text;
            *ret_size = size;
            return error;
        }
        size += (size_t)got;
        if (size > FILE_SIZE_MAX) {
            free(text);
            return -EFBIG;
        }
        if (size == room) {
            char *larger = realloc(text, room *= 2);

            if (!larger)
                free(text);
            text = larger;
        }
    }
    return -ENOMEM;
}

bool suppress_load(SuppressSet *set, const char *path, const char **ret_error)
{
    char *text = NULL;
    size_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return say_failure(set, path, strerror(errno), ret_error);
    int error = read_all(fd, &text, &size);
    close(fd);
    if (error)
        return say_failure(set, path, strerror(-error), ret_error);
    bool ok = suppress_parse(set, path, text, size, ret_error);
    free(text);
    return ok;
}
