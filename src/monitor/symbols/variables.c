// SPDX-License-Identifier: MIT
//
// Variables with an address that is one constant: DW_OP_addr for globals, DW_OP_fbreg
// in a function whose frame base is the CFA for locals. That is what compilers write for
// variables that have memory at all; a location that needs registers of the moment is
// left alone.
#include "monitor/symbols/variables.h"

#include <dwarf.h>
#include <stdlib.h>

#define GLOBALS_MAX 4000000
#define DEPTH_MAX   64

static u64 size_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type, peeled;
    Dwarf_Word size;

    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) ||
        !dwarf_formref_die(&attribute, &type) || dwarf_peel_type(&type, &peeled) != 0 ||
        dwarf_aggregate_size(&peeled, &size) != 0)
        return 0;
    return size;
}

static void describe(DebugInfo *info, Unit *unit, Dwarf_Die *die, Variable *ret_variable)
{
    ret_variable->name = die_plain_name(die);
    ret_variable->part_offset = variable_part(die, ret_variable->offset, ret_variable->part);
    ret_variable->line = (u32)die_number(die, DW_AT_decl_line);
    ret_variable->folder = unit_folder(unit);
    // With link-time optimisation the declaration is in another unit, whose files have other
    // numbers.
    Dwarf_Attribute number;
    if (dwarf_attr_integrate(die, DW_AT_decl_file, &number) && number.cu != die->cu)
        ret_variable->file = dwarf_decl_file(die);
    else
        ret_variable->file = unit_file(info, unit, die_number(die, DW_AT_decl_file));
}

// ---- globals --------------------------------------------------------------------------------

static bool constant_address(Dwarf_Die *die, u64 *ret_address)
{
    Dwarf_Attribute attribute, address;
    Dwarf_Op *ops;
    size_t count;

    if (!dwarf_attr(die, DW_AT_location, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1)
        return false;
    if (ops[0].atom == DW_OP_addr) {
        *ret_address = ops[0].number;
        return true;
    }
    Dwarf_Addr value;
    if ((ops[0].atom != DW_OP_addrx && ops[0].atom != DW_OP_GNU_addr_index) ||
        dwarf_getlocation_attr(&attribute, ops, &address) != 0 ||
        dwarf_formaddr(&address, &value) != 0)
        return false;
    *ret_address = value;
    return true;
}

static void add_global(Globals *globals, Dwarf_Die *die, u32 unit)
{
    u64 address;
    if (!constant_address(die, &address) || globals->count >= GLOBALS_MAX)
        return;
    if (globals->count == globals->capacity) {
        u32 capacity = globals->capacity ? 2 * globals->capacity : 256;
        Dwarf_Die *dies = realloc(globals->dies, capacity * sizeof *dies);
        globals->dies = dies ? dies : globals->dies;
        u32 *units = realloc(globals->units, capacity * sizeof *units);
        globals->units = units ? units : globals->units;
        if (!dies || !units)
            return;
        globals->capacity = capacity;
    }
    u64 size = size_of(die);
    if (!ranges_add(&globals->ranges, address, address + (size ? size : 1), globals->count))
        return;
    globals->dies[globals->count] = *die;
    globals->units[globals->count++] = unit;
}

// Static variables of functions are in their blocks.
static void list_globals(Globals *globals, Dwarf_Die *parent, u32 unit, u32 depth, u64 *steps)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
            add_global(globals, &die, unit);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
            list_globals(globals, &die, unit, depth + 1, steps);
            break;
        }
    } while (die_next_sibling(&die, steps));
}

bool variables_find_global(Globals *globals, DebugInfo *info, u64 vaddr, Variable *ret_variable)
{
    debug_info_unit(info, 0); // indexes the units
    u64 steps = 0;
    for (u32 i = 0; !globals->is_read && i < info->unit_count; i++) {
        Dwarf_Die tree;
        if (debug_info_tree(info, &info->units[i], &tree))
            list_globals(globals, &tree, i, 0, &steps);
    }
    if (!globals->is_read)
        ranges_seal(&globals->ranges);
    globals->is_read = true;

    const AddressRange *range = ranges_find(&globals->ranges, vaddr);
    if (!range || range->index >= globals->count)
        return false;
    *ret_variable = (Variable){ .offset = vaddr - range->low, .size = range->high - range->low };
    Dwarf_Die *die = &globals->dies[range->index];
    describe(info, &info->units[globals->units[range->index]], die, ret_variable);
    return ret_variable->name != NULL;
}

void variables_free(Globals *globals)
{
    free(globals->ranges.list);
    free(globals->dies);
    free(globals->units);
    *globals = (Globals){ 0 };
}

// ---- locals ---------------------------------------------------------------------------------

// Where a location list has entries for the pc, the one around it counts.
static bool frame_offset(Dwarf_Die *die, u64 pc, i64 *ret_offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (!dwarf_attr(die, DW_AT_location, &attribute) ||
        dwarf_getlocation_addr(&attribute, pc, &ops, &count, 1) != 1 || count != 1 ||
        ops[0].atom != DW_OP_fbreg)
        return false;
    *ret_offset = (i64)ops[0].number;
    return true;
}

// The CFA as the unwind tables of the loaded file have it at a pc: a register and a number.
static bool cfa_rule(Elf *image, u64 pc, u64 *ret_register, i64 *ret_offset)
{
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops;
    size_t count;
    Dwarf_CFI *cfi = image ? dwarf_getcfi_elf(image) : NULL;
    bool found = cfi && dwarf_cfi_addrframe(cfi, pc, &frame) == 0 &&
                 dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1;

    if (found && ops[0].atom == DW_OP_bregx) {
        *ret_register = ops[0].number;
        *ret_offset = (i64)ops[0].number2;
    } else if (found && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
        *ret_register = ops[0].atom - DW_OP_breg0;
        *ret_offset = (i64)ops[0].number;
    } else {
        found = false;
    }
    free(frame);
    if (cfi)
        dwarf_cfi_end(cfi);
    return found;
}

// What fbreg counts from, as a distance from the CFA. gcc says the CFA itself; clang says rbp, or
// rsp where there is no frame pointer, and the unwind tables say how far that is.
static bool frame_base(Dwarf_Die *function, Elf *image, u64 pc, i64 *ret_base)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;
    u64 base_register, cfa_register;
    i64 cfa_offset;

    if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1)
        return false;
    if (ops[0].atom == DW_OP_call_frame_cfa) {
        *ret_base = 0;
        return true;
    }
    if (ops[0].atom < DW_OP_reg0 || ops[0].atom > DW_OP_reg31)
        return false;
    base_register = ops[0].atom - DW_OP_reg0;
    if (!cfa_rule(image, pc, &cfa_register, &cfa_offset) || cfa_register != base_register)
        return false;
    *ret_base = -cfa_offset;
    return true;
}

typedef struct LocalSearch {
    u64 pc;
    const SplitUnit *split;
    i64 distance; // from the frame base
    Dwarf_Die found;
    i64 offset;
    u64 size;
    bool is_found;
    u64 steps;
} LocalSearch;

static void try_local(LocalSearch *search, Dwarf_Die *die)
{
    i64 offset;
    if (!frame_offset(die, search->pc, &offset))
        return;
    u64 size = size_of(die);
    if (search->distance < offset || (u64)(search->distance - offset) >= (size ? size : 1))
        return;
    search->found = *die;
    search->offset = offset;
    search->size = size;
    search->is_found = true;
}

// Blocks that are not around the pc may use the same memory for other variables: an inner
// variable of a block around the pc wins, for it is found last.
static void search_block(LocalSearch *search, Dwarf_Die *block, u32 depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || dwarf_child(block, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            try_local(search, &die);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
            if (die_has_pc(&die, search->split, search->pc))
                search_block(search, &die, depth + 1);
            break;
        }
    } while (die_next_sibling(&die, &search->steps));
}

bool variables_find_local(DebugInfo *info, Elf *image, u64 pc, i64 distance,
                          Variable *ret_variable)
{
    Unit *unit = debug_info_unit(info, pc);
    Body *body = unit ? debug_info_body(info, unit, pc) : NULL;
    i64 base;

    if (!body || !frame_base(&body->die, image, pc, &base))
        return false;
    LocalSearch search = { .pc = pc, .split = &unit->split, .distance = distance - base };
    search_block(&search, &body->die, 0);
    if (!search.is_found)
        return false;
    *ret_variable = (Variable){ .offset = (u64)(search.distance - search.offset),
                                .size = search.size };
    describe(info, unit, &search.found, ret_variable);
    return ret_variable->name != NULL;
}
