// SPDX-License-Identifier: MIT
//
// The table of strings: a map from hash to id, and a list of ids for each hash.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/intern/intern.h"

struct Interner {
    Map ids;      // hash to the first id that has it
    char **texts; // by id
    u32 *same_hash; // the next id with the same hash; U32_MAX: none
    u32 count, capacity;
};

Interner *interner_new(void)
{
    Interner *interner = calloc(1, sizeof(*interner));

    if (!interner)
        abort();
    return interner;
}

void interner_free(Interner *interner)
{
    for (u32 i = 0; i < interner->count; i++)
        free(interner->texts[i]);
    free(interner->texts);
    free(interner->same_hash);
    map_free(&interner->ids);
    free(interner);
}

static u64 hash_text(const char *text)
{
    u64 hash = 0xcbf29ce484222325; // FNV-1a

    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 0x100000001b3;
    return hash;
}

u32 intern(Interner *interner, const char *text)
{
    u64 hash = hash_text(text);
    u64 first = UINT32_MAX;

    map_get(&interner->ids, hash, &first);
    for (u32 id = (u32)first; id != UINT32_MAX; id = interner->same_hash[id]) {
        if (strcmp(interner->texts[id], text) == 0)
            return id;
    }
    if (interner->count == interner->capacity) {
        interner->capacity = interner->capacity * 2 + 256;
        interner->texts =
            realloc(interner->texts, interner->capacity * sizeof(*interner->texts));
        interner->same_hash =
            realloc(interner->same_hash, interner->capacity * sizeof(*interner->same_hash));
        if (!interner->texts || !interner->same_hash)
            abort();
    }
    u32 id = interner->count++;
    interner->texts[id] = strdup(text);
    interner->same_hash[id] = (u32)first;
    if (!interner->texts[id] || !map_put(&interner->ids, hash, id))
        abort();
    return id;
}

const char *interned(const Interner *interner, u32 id)
{
    return interner->texts[id];
}

u32 interned_count(const Interner *interner)
{
    return interner->count;
}
