// SPDX-License-Identifier: MIT
//
// See names.h.
#include "monitor/callgrind/names.h"

#include <stdlib.h>
#include <string.h>

static u64 hash_name(const char *name)
{
    u64 hash = 0xcbf29ce484222325ull;
    for (; *name; name++)
        hash = (hash ^ (u8)*name) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

static u32 *slot_of(const NameTable *table, const char *name)
{
    u32 mask = table->slot_count - 1, at = (u32)hash_name(name) & mask;
    while (table->slots[at] && strcmp(names_name(table, table->slots[at]), name) != 0)
        at = (at + 1) & mask;
    return &table->slots[at];
}

static bool grow(NameTable *table)
{
    u32 capacity = table->capacity ? 2 * table->capacity : 256;
    char **names = realloc(table->names, capacity * sizeof(*names));
    u32 *slots = calloc(2 * (size_t)capacity, sizeof(*slots));

    if (names)
        table->names = names;
    if (!names || !slots) {
        free(slots);
        return false;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = 2 * capacity;
    table->capacity = capacity;
    for (u32 number = 1; number <= table->count; number++)
        *slot_of(table, names_name(table, number)) = number;
    return true;
}

u32 names_number(NameTable *table, const char *name)
{
    u32 *slot = table->slot_count ? slot_of(table, name) : NULL;

    if (slot && *slot)
        return *slot;
    if (table->count == table->capacity && !grow(table))
        return 0;
    char *copy = strdup(name);
    if (!copy)
        return 0;
    table->names[table->count++] = copy;
    *slot_of(table, name) = table->count;
    return table->count;
}

void names_free(NameTable *table)
{
    for (u32 i = 0; i < table->count; i++)
        free(table->names[i]);
    free(table->names);
    free(table->slots);
    *table = (NameTable){0};
}
