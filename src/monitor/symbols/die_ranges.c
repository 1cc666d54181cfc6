// SPDX-License-Identifier: MIT
//
// libdw reads the range lists of whole units. Those of a split unit count from an
// address that only the skeleton has, and libdw takes zero for it when it does not know
// the skeleton: these lists are read here.
#include "monitor/symbols/die_ranges.h"

#include <dwarf.h>
#include <string.h>

static bool take_u64(const PlainSection *section, u64 *offset, u64 *ret_value)
{
    if (*offset > section->size || section->size - *offset < 8)
        return false;
    memcpy(ret_value, (const u8 *)section->data + *offset, 8);
    *offset += 8;
    return true;
}

static bool take_uleb(const PlainSection *section, u64 *offset, u64 *ret_value)
{
    u64 value = 0;
    for (u32 shift = 0; *offset < section->size; shift += 7) {
        u8 byte = ((const u8 *)section->data)[(*offset)++];
        if (shift < 64)
            value |= (u64)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

// DW_FORM_rnglistx: a number of the table behind the header of the unit's lists. Lists of split
// units are found at the start of their section, in 32-bit DWARF only: no compiler splits a unit of
// 4 GiB.
static bool list_offset(const SplitUnit *split, const Dwarf_Attribute *attribute, u64 *ret_offset)
{
    // The header is unit_length, version, two sizes, and the count of the table.
    const u64 table = 12;
    PlainSection number = { .data = attribute->valp, .size = 5 };
    u64 at = 0, index;
    u32 offset;

    if (!take_uleb(&number, &at, &index) || index > split->lists.size / 4)
        return false;
    at = table + 4 * index;
    if (split->lists.size < 4 || at > split->lists.size - 4)
        return false;
    memcpy(&offset, (const u8 *)split->lists.data + at, sizeof offset);
    *ret_offset = table + offset;
    return true;
}

void die_ranges_begin(DieRanges *ranges, Dwarf_Die *die, const SplitUnit *split)
{
    Dwarf_Attribute attribute;
    Dwarf_Half version = 0;
    u64 offset;

    *ranges = (DieRanges){ .die = die };
    if (!split || !split->dwarf || !dwarf_attr(die, DW_AT_ranges, &attribute) ||
        (attribute.form == DW_FORM_rnglistx ? !list_offset(split, &attribute, &offset)
                                            : dwarf_formudata(&attribute, &offset) != 0))
        return;
    dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
    ranges->split = split;
    ranges->is_own = true;
    ranges->is_list = version >= 5;
    ranges->offset = offset;
    ranges->base = split->base_address;
}

// An address by its number.
static bool take_address(const SplitUnit *split, u64 *offset, u64 *ret_address)
{
    u64 index;
    if (!take_uleb(&split->lists, offset, &index) || index > split->addresses.size / 8)
        return false;
    index *= 8;
    return take_u64(&split->addresses, &index, ret_address);
}

// .debug_ranges: pairs, ended by two zeroes; a first half of all ones sets the base.
static bool next_pair(DieRanges *ranges, u64 *ret_low, u64 *ret_high)
{
    const PlainSection *pairs = &ranges->split->pairs;
    u64 low, high;

    while (take_u64(pairs, &ranges->offset, &low) && take_u64(pairs, &ranges->offset, &high)) {
        if (low == 0 && high == 0)
            return false;
        if (low == ~0ull) {
            ranges->base = high;
            continue;
        }
        *ret_low = ranges->base + low;
        *ret_high = ranges->base + high;
        return true;
    }
    return false;
}

// .debug_rnglists: a kind, then what the kind needs.
static bool next_entry(DieRanges *ranges, u64 *ret_low, u64 *ret_high)
{
    const SplitUnit *split = ranges->split;
    const PlainSection *list = &split->lists;
    u64 *at = &ranges->offset, low, high;

    while (*at < list->size) {
        switch (((const u8 *)list->data)[(*at)++]) {
        case DW_RLE_base_addressx:
            if (!take_address(split, at, &ranges->base))
                return false;
            continue;
        case DW_RLE_base_address:
            if (!take_u64(list, at, &ranges->base))
                return false;
            continue;
        case DW_RLE_offset_pair:
            if (!take_uleb(list, at, &low) || !take_uleb(list, at, &high))
                return false;
            *ret_low = ranges->base + low;
            *ret_high = ranges->base + high;
            return true;
        case DW_RLE_startx_endx:
            return take_address(split, at, ret_low) && take_address(split, at, ret_high);
        case DW_RLE_startx_length:
            if (!take_address(split, at, ret_low) || !take_uleb(list, at, &high))
                return false;
            *ret_high = *ret_low + high;
            return true;
        case DW_RLE_start_end:
            return take_u64(list, at, ret_low) && take_u64(list, at, ret_high);
        case DW_RLE_start_length:
            if (!take_u64(list, at, ret_low) || !take_uleb(list, at, &high))
                return false;
            *ret_high = *ret_low + high;
            return true;
        default: // DW_RLE_end_of_list, or something newer
            return false;
        }
    }
    return false;
}

bool die_ranges_next(DieRanges *ranges, u64 *ret_low, u64 *ret_high)
{
    Dwarf_Addr low, high;

    if (ranges->is_own)
        return ranges->is_list ? next_entry(ranges, ret_low, ret_high)
                               : next_pair(ranges, ret_low, ret_high);
    ranges->at = dwarf_ranges(ranges->die, ranges->at, &ranges->base, &low, &high);
    if (ranges->at <= 0)
        return false;
    *ret_low = low;
    *ret_high = high;
    return true;
}

bool die_has_pc(Dwarf_Die *die, const SplitUnit *split, u64 pc)
{
    DieRanges ranges;
    u64 low, high;

    die_ranges_begin(&ranges, die, split);
    while (die_ranges_next(&ranges, &low, &high))
        if (pc >= low && pc < high)
            return true;
    return false;
}
