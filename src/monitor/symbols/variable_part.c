// SPDX-License-Identifier: MIT
#include "monitor/symbols/variable_part.h"

#include <dwarf.h>
#include <stdio.h>

#include "monitor/symbols/debug_info.h"

enum { LEVELS_MAX = 32, DIMENSIONS_MAX = 8 };

// Where the search is: a type, and a distance from where a value of it begins.
typedef struct Walk {
    Dwarf_Die type;
    u64 offset;
    char *part;
    size_t length;
    u64 steps; // entries looked at
} Walk;

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret_type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type;

    return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
           dwarf_formref_die(&attribute, &type) && dwarf_peel_type(&type, ret_type) == 0;
}

static bool number_of(Dwarf_Die *die, unsigned name, u64 *ret_number)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;

    if (!dwarf_attr_integrate(die, name, &attribute) ||
        dwarf_formudata(&attribute, &number) != 0)
        return false;
    *ret_number = number;
    return true;
}

// False: there is no more room.
static bool append(Walk *walk, const char *before, const char *text)
{
    size_t room = VARIABLE_PART_MAX - walk->length;
    int length = snprintf(walk->part + walk->length, room, "%s%s", before, text);

    if (length < 0 || (size_t)length >= room) {
        walk->part[walk->length] = 0;
        return false;
    }
    walk->length += (size_t)length;
    return true;
}

// ---- arrays ---------------------------------------------------------------------------------

// How many elements each dimension has, outermost first; 0: not known. Returns how many
// dimensions there are, 0 if they do not count from 0.
static unsigned dimensions_of(Walk *walk, u64 ret_counts[DIMENSIONS_MAX])
{
    Dwarf_Die die, unit;
    Dwarf_Sword lowest;
    unsigned count = 0;
    u64 number;

    if (!dwarf_diecu(&walk->type, &unit, NULL, NULL) ||
        dwarf_default_lower_bound(dwarf_srclang(&unit), &lowest) != 0 || lowest != 0 ||
        dwarf_child(&walk->type, &die) != 0)
        return 0;
    do {
        if (dwarf_tag(&die) != DW_TAG_subrange_type)
            continue;
        if (count == DIMENSIONS_MAX || (number_of(&die, DW_AT_lower_bound, &number) && number))
            return 0;
        if (number_of(&die, DW_AT_count, &number))
            ret_counts[count++] = number;
        else
            ret_counts[count++] = number_of(&die, DW_AT_upper_bound, &number) ? number + 1 : 0;
    } while (die_next_sibling(&die, &walk->steps));
    return count;
}

static bool enter_element(Walk *walk)
{
    u64 counts[DIMENSIONS_MAX], indexes[DIMENSIONS_MAX];
    unsigned dimensions = dimensions_of(walk, counts);
    size_t length = walk->length;
    Dwarf_Die element;
    Dwarf_Word size;

    if (!dimensions || !type_of(&walk->type, &element) ||
        dwarf_aggregate_size(&element, &size) != 0 || size == 0)
        return false;
    u64 index = walk->offset / size;
    for (unsigned i = dimensions; i-- > 1; index /= counts[i]) {
        if (!counts[i])
            return false;
        indexes[i] = index % counts[i];
    }
    if (counts[0] && index >= counts[0])
        return false;
    indexes[0] = index;
    for (unsigned i = 0; i < dimensions; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%llu]", (unsigned long long)indexes[i]);
        if (!append(walk, "[", text)) {
            walk->length = length;
            walk->part[length] = 0;
            return false;
        }
    }
    walk->offset %= size;
    walk->type = element;
    return true;
}

// ---- structures -----------------------------------------------------------------------------

// The bits of a bit field, counted from the start of the structure. DWARF 2 and 3 count them within
// a unit of storage, from its highest bit.
static bool field_bits(Dwarf_Die *member, Dwarf_Die *type, u64 *ret_first, u64 *ret_count)
{
    u64 location, offset, size;
    Dwarf_Word type_size;

    if (!number_of(member, DW_AT_bit_size, ret_count) || *ret_count > 128)
        return false;
    if (number_of(member, DW_AT_data_bit_offset, ret_first))
        return true;
    if (!number_of(member, DW_AT_bit_offset, &offset) ||
        !number_of(member, DW_AT_data_member_location, &location))
        return false;
    if (!number_of(member, DW_AT_byte_size, &size)) {
        if (dwarf_aggregate_size(type, &type_size) != 0)
            return false;
        size = type_size;
    }
    *ret_first = 8 * (location + size) - offset - *ret_count;
    return true;
}

static bool has_byte(Dwarf_Die *member, u64 offset, Dwarf_Die *ret_type, u64 *ret_start)
{
    u64 start, first, count, size;
    Dwarf_Word bytes;

    if (!type_of(member, ret_type))
        return false;
    if (field_bits(member, ret_type, &first, &count)) {
        start = first / 8;
        size = (first % 8 + count + 7) / 8;
    } else {
        if (!number_of(member, DW_AT_data_member_location, &start) ||
            dwarf_aggregate_size(ret_type, &bytes) != 0)
            return false;
        size = bytes;
    }
    *ret_start = start;
    return offset >= start && offset - start < size;
}

static bool enter_member(Walk *walk)
{
    Dwarf_Die die, type, found, found_type = {0};
    u64 start, found_start = 0;
    unsigned matches = 0;

    if (dwarf_child(&walk->type, &die) != 0)
        return false;
    do {
        int tag = dwarf_tag(&die);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
            !has_byte(&die, walk->offset, &type, &start))
            continue;
        matches++;
        found = die;
        found_type = type;
        found_start = start;
    } while (die_next_sibling(&die, &walk->steps));
    if (matches != 1)
        return false;
    const char *name = dwarf_tag(&found) == DW_TAG_member ? dwarf_diename(&found) : NULL;
    if (name && !append(walk, ".", name))
        return false;
    walk->type = found_type;
    walk->offset -= found_start;
    return true;
}

u64 variable_part(Dwarf_Die *variable, u64 offset, char ret_part[VARIABLE_PART_MAX])
{
    Walk walk = {.offset = offset, .part = ret_part};
    u64 named_at = offset; // a base or a nameless structure is only entered on the way to a name
    size_t named = 0;
    bool entered = type_of(variable, &walk.type);

    ret_part[0] = 0;
    for (unsigned level = 0; entered && level < LEVELS_MAX; level++) {
        switch (dwarf_tag(&walk.type)) {
        case DW_TAG_array_type: entered = enter_element(&walk); break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type: entered = enter_member(&walk); break;
        default: entered = false; break;
        }
        if (entered && walk.length > named) {
            named = walk.length;
            named_at = walk.offset;
        }
    }
    return named_at;
}
