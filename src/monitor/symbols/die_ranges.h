// SPDX-License-Identifier: MIT
//
// The address ranges of an entry, one by one, in whole and in split units.
#ifndef MUNINN_MONITOR_SYMBOLS_DIE_RANGES_H
#define MUNINN_MONITOR_SYMBOLS_DIE_RANGES_H

#include "monitor/symbols/split_unit.h"

typedef struct DieRanges {
    Dwarf_Die *die;
    const SplitUnit *split; // NULL: libdw knows it all
    ptrdiff_t at;           // libdw's cursor
    u64 offset;             // ours, in the section
    Dwarf_Addr base;        // what offsets in the list count from by now
    bool is_list;           // 5: entries of .debug_rnglists, else pairs
    bool is_own;
} DieRanges;

void die_ranges_begin(DieRanges *ranges, Dwarf_Die *die, const SplitUnit *split);
// False: there are no more. Empty ranges are passed on as they are.
bool die_ranges_next(DieRanges *ranges, u64 *ret_low, u64 *ret_high);

bool die_has_pc(Dwarf_Die *die, const SplitUnit *split, u64 pc);

#endif
