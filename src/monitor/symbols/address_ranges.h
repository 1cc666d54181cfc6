// SPDX-License-Identifier: MIT
//
// Ranges of addresses that may overlap, each with a number; which one is around an
// address. Filled, sealed, then asked.
#ifndef MUNINN_MONITOR_SYMBOLS_ADDRESS_RANGES_H
#define MUNINN_MONITOR_SYMBOLS_ADDRESS_RANGES_H

#include "base/types.h"

typedef struct AddressRange {
    u64 low, high;
    u64 reach; // the highest end of this and all ranges before it
    u32 index;
} AddressRange;

typedef struct AddressRanges {
    AddressRange *list;
    size_t count, capacity;
} AddressRanges;

// False: it is empty, or what the linker leaves of dropped code (address 0), or memory is short.
bool ranges_add(AddressRanges *ranges, u64 low, u64 high, u32 index);
void ranges_seal(AddressRanges *ranges);
// Of the ranges around an address the one that begins last; NULL: none.
const AddressRange *ranges_find(const AddressRanges *ranges, u64 address);

// Room for one more element of a list that doubles.
bool list_grow(void **list, size_t *capacity, size_t count, size_t element_bytes);

#endif
