// SPDX-License-Identifier: MIT
//
// Ranges sorted by where they begin. `reach` tells a search when to stop looking back; a
// hostile table of ranges around each other is looked at only so far.
#include "monitor/symbols/address_ranges.h"

#include <stdlib.h>

#define LOOK_BACK_MAX 512

bool list_grow(void **list, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(*list, wanted * element_bytes);
    if (!grown)
        return false;
    *list = grown;
    *capacity = wanted;
    return true;
}

bool ranges_add(AddressRanges *ranges, u64 low, u64 high, u32 index)
{
    // What the linker dropped is left at address 0, or 1 in some lists.
    if (low <= 1 || high <= low ||
        !list_grow((void **)&ranges->list, &ranges->capacity, ranges->count, sizeof *ranges->list))
        return false;
    ranges->list[ranges->count++] = (AddressRange){ low, high, 0, index };
    return true;
}

static int by_low(const void *left, const void *right)
{
    const AddressRange *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high > b->high ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void ranges_seal(AddressRanges *ranges)
{
    u64 reach = 0;
    if (ranges->count)
        qsort(ranges->list, ranges->count, sizeof *ranges->list, by_low);
    for (size_t i = 0; i < ranges->count; i++) {
        reach = max_u64(reach, ranges->list[i].high);
        ranges->list[i].reach = reach;
    }
}

const AddressRange *ranges_find(const AddressRanges *ranges, u64 address)
{
    size_t low = 0, high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->list[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = 0; i < LOOK_BACK_MAX && low > 0; i++, low--) {
        const AddressRange *range = &ranges->list[low - 1];
        if (address < range->high)
            return range;
        if (range->reach <= address)
            break;
    }
    return NULL;
}
