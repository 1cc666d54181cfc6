// SPDX-License-Identifier: MIT
//
// Open addressing with linear probing. Removal shifts the rest of the run back
// instead of leaving tombstones, so a map that is filled and emptied for days
// stays as quick as a new one. Invariant: between a key's home slot and the slot
// where it lies there is no empty slot.
#include "base/map.h"

#include "base/assert.h"
#include "base/pages.h"

#define FIRST_SLOT_COUNT (PAGE_SIZE / sizeof(MapSlot))

// Keys are addresses, ids and two of these side by side: regular in any of their bits. Each bit of
// them has to matter for each of the slot's, or probing ends up in few places: one product mixes
// upwards only, so its upper half is mixed in again below.
static size_t home_slot(const Map *map, u64 key)
{
    u64 mixed = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;

    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
    return mixed >> 32 & (map->slot_count - 1);
}

static size_t find_slot(const Map *map, u64 key)
{
    size_t slot = home_slot(map, key);

    while (map->slots[slot].key != key && map->slots[slot].key != 0)
        slot = (slot + 1) & (map->slot_count - 1);
    return slot;
}

static bool grow(Map *map)
{
    Map bigger = *map;

    bigger.slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOT_COUNT;
    bigger.slots = pages_map(bigger.slot_count * sizeof(MapSlot));
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].key != 0)
            bigger.slots[find_slot(&bigger, map->slots[i].key)] = map->slots[i];
    }
    if (map->slots)
        pages_unmap(map->slots, map->slot_count * sizeof(MapSlot));
    *map = bigger;
    return true;
}

bool map_get(const Map *map, u64 key, u64 *ret_value)
{
    if (key == 0) {
        if (map->has_zero)
            *ret_value = map->zero_value;
        return map->has_zero;
    }
    if (map->slot_count == 0)
        return false;

    const MapSlot *slot = &map->slots[find_slot(map, key)];
    if (slot->key == 0)
        return false;
    *ret_value = slot->value;
    return true;
}

bool map_put(Map *map, u64 key, u64 value)
{
    if (key == 0) {
        map->has_zero = true;
        map->zero_value = value;
        return true;
    }
    if (map->slot_count != 0) {
        MapSlot *slot = &map->slots[find_slot(map, key)];
        if (slot->key == key) {
            slot->value = value;
            return true;
        }
    }
    if (map->used_slots >= map->slot_count / 4 * 3 && !grow(map))
        return false;
    map->slots[find_slot(map, key)] = (MapSlot){ key, value };
    map->used_slots++;
    return true;
}

// Empties `hole` and moves back every later key of its run whose probe path
// crosses the hole.
static void close_hole(Map *map, size_t hole)
{
    size_t mask = map->slot_count - 1;

    for (size_t slot = (hole + 1) & mask; map->slots[slot].key != 0; slot = (slot + 1) & mask) {
        size_t home = home_slot(map, map->slots[slot].key);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->slots[hole] = map->slots[slot];
            hole = slot;
        }
    }
    map->slots[hole] = (MapSlot){ 0, 0 };
}

bool map_remove(Map *map, u64 key)
{
    if (key == 0) {
        bool was_there = map->has_zero;
        map->has_zero = false;
        return was_there;
    }
    if (map->slot_count == 0)
        return false;

    size_t slot = find_slot(map, key);
    if (map->slots[slot].key == 0)
        return false;
    close_hole(map, slot);
    map->used_slots--;
    return true;
}

size_t map_count(const Map *map)
{
    return map->used_slots + (map->has_zero ? 1 : 0);
}

// Cursor 0 stands before the pair with key 0, cursor n + 1 before slot n.
bool map_next(const Map *map, size_t *cursor, u64 *ret_key, u64 *ret_value)
{
    if (*cursor == 0) {
        *cursor = 1;
        if (map->has_zero) {
            *ret_key = 0;
            *ret_value = map->zero_value;
            return true;
        }
    }
    while (*cursor <= map->slot_count) {
        const MapSlot *slot = &map->slots[*cursor - 1];
        ++*cursor;
        if (slot->key != 0) {
            *ret_key = slot->key;
            *ret_value = slot->value;
            return true;
        }
    }
    return false;
}

void map_free(Map *map)
{
    if (map->slots)
        pages_unmap(map->slots, map->slot_count * sizeof(MapSlot));
    *map = (Map){ 0 };
}
