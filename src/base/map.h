// SPDX-License-Identifier: MIT
//
// A hash map from u64 to u64 in memory of its own (base/pages.h). Any key and
// any value may be stored. A zeroed Map is a valid empty one. Not thread-safe:
// the owner brings its lock.
#ifndef MUNINN_BASE_MAP_H
#define MUNINN_BASE_MAP_H

#include "base/types.h"

typedef struct MapSlot {
    u64 key; // 0 marks an empty slot; the pair whose key is 0 lives in the Map itself
    u64 value;
} MapSlot;

typedef struct Map {
    MapSlot *slots;    // a power of two of them, at most 3/4 full
    size_t slot_count; // 0 until the first put
    size_t used_slots;
    bool has_zero;
    u64 zero_value;
} Map;

// True and the value when the key is there; *ret_value is untouched otherwise.
bool map_get(const Map *map, u64 key, u64 *ret_value);

// Inserts or replaces. False, with the map unchanged, when the kernel has no memory.
bool map_put(Map *map, u64 key, u64 value);

// True when the key was there.
bool map_remove(Map *map, u64 key);

size_t map_count(const Map *map);

// Visits every pair once, in no order: start with cursor 0, go on while true.
// The map may not change meanwhile, except that the value of a key may.
bool map_next(const Map *map, size_t *cursor, u64 *ret_key, u64 *ret_value);

// Removes all pairs and gives the memory back.
void map_free(Map *map);

#endif
