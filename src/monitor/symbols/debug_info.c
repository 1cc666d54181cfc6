// SPDX-License-Identifier: MIT
//
// Walks DWARF once and remembers where things are. Units are found by the ranges of
// their root entries (.debug_aranges is often missing or partial); functions of a unit when it is
// first asked about; inlined calls of a function likewise. Every walk only goes forward
// and counts its steps, so that a file whose entries point at each other ends it.
#include "monitor/symbols/debug_info.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX     1000000
#define STEPS_MAX     100000000ull // about ten seconds
#define DEPTH_MAX     256
#define SCOPES_MAX    (1u << 20)

static bool grow32(void **list, u32 *capacity, u32 count, size_t element)
{
    size_t wide = *capacity;
    bool grown = list_grow(list, &wide, count, element);
    *capacity = (u32)wide;
    return grown;
}

// ---- units ----------------------------------------------------------------------------------

void debug_info_init(DebugInfo *info, DebugFile *file)
{
    *info = (DebugInfo){ .file = file };
}

static void add_die_ranges(AddressRanges *ranges, Dwarf_Die *die, const SplitUnit *split,
                           u32 index, u64 *steps)
{
    DieRanges list;
    u64 low, high;
    die_ranges_begin(&list, die, split);
    while (++*steps < STEPS_MAX && die_ranges_next(&list, &low, &high))
        ranges_add(ranges, low, high, index);
}

static void index_units(DebugInfo *info)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    u8 type;

    info->is_indexed = true;
    while (info->unit_count < UNITS_MAX &&
           dwarf_get_units(info->file->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        if (type == DW_UT_type || type == DW_UT_partial || dwarf_tag(&die) == DW_TAG_partial_unit)
            continue;
        if (!grow32((void **)&info->units, &info->unit_capacity, info->unit_count,
                    sizeof *info->units))
            break;
        info->units[info->unit_count] = (Unit){ .die = die };
        add_die_ranges(&info->ranges, &die, NULL, info->unit_count, &info->steps);
        info->unit_count++;
    }
    ranges_seal(&info->ranges);
}

Unit *debug_info_unit(DebugInfo *info, u64 vaddr)
{
    info->steps = 0;
    if (!info->file->dwarf)
        return NULL;
    if (!info->is_indexed)
        index_units(info);
    const AddressRange *range = ranges_find(&info->ranges, vaddr);
    return range ? &info->units[range->index] : NULL;
}

static void open_tree(DebugInfo *info, Unit *unit)
{
    unit->is_opened = true;
    unit->tree = unit->die;
    unit->has_tree = true;
    if (split_unit_is_skeleton(&unit->die))
        unit->has_tree =
            split_unit_open(&unit->split, &info->package, dwarf_getelf(info->file->dwarf),
                            info->file->path, &unit->die, &unit->tree);
}

bool debug_info_tree(DebugInfo *info, Unit *unit, Dwarf_Die *ret_tree)
{
    if (!unit->is_opened)
        open_tree(info, unit);
    if (unit->has_tree)
        *ret_tree = unit->tree;
    return unit->has_tree;
}

// ---- functions ------------------------------------------------------------------------------

bool die_next_sibling(Dwarf_Die *die, u64 *steps)
{
    Dwarf_Die next;
    if (++*steps > STEPS_MAX || dwarf_siblingof(die, &next) != 0 || next.addr <= die->addr)
        return false;
    *die = next;
    return true;
}

static void add_function(DebugInfo *info, Unit *unit, Dwarf_Die *die)
{
    size_t before = unit->functions.count;
    if (!dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges))
        return;
    add_die_ranges(&unit->functions, die, &unit->split, unit->body_count, &info->steps);
    if (unit->functions.count == before)
        return;
    if (grow32((void **)&unit->bodies, &unit->body_capacity, unit->body_count,
               sizeof *unit->bodies))
        unit->bodies[unit->body_count++] = (Body){ .die = *die };
    else
        unit->functions.count = before;
}

static bool is_space(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module;
}

static bool may_hold_functions(int tag)
{
    return is_space(tag) || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
           tag == DW_TAG_interface_type || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block;
}

static void list_functions(DebugInfo *info, Unit *unit, Dwarf_Die *parent, bool deep, u32 depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram)
            add_function(info, unit, &die);
        if (deep ? may_hold_functions(tag) : is_space(tag))
            list_functions(info, unit, &die, deep, depth + 1);
    } while (die_next_sibling(&die, &info->steps));
}

static void free_functions(Unit *unit)
{
    for (u32 i = 0; i < unit->body_count; i++) {
        free(unit->bodies[i].scopes);
        free(unit->bodies[i].ranges);
    }
    free(unit->bodies);
    free(unit->functions.list);
    unit->bodies = NULL;
    unit->body_count = unit->body_capacity = 0;
    unit->functions = (AddressRanges){ 0 };
}

// Nearly all functions are outside of others and of types: looking there only is several times
// as fast. The rest is looked at when an address of the unit was not found.
static const AddressRange *find_function(DebugInfo *info, Unit *unit, u64 vaddr)
{
    Dwarf_Die tree;
    if (!debug_info_tree(info, unit, &tree))
        return NULL;
    if (!unit->is_shallow) {
        unit->is_shallow = true;
        list_functions(info, unit, &tree, false, 0);
        ranges_seal(&unit->functions);
    }
    const AddressRange *found = ranges_find(&unit->functions, vaddr);
    if (found || unit->is_deep)
        return found;
    unit->is_deep = true;
    free_functions(unit);
    list_functions(info, unit, &tree, true, 0);
    ranges_seal(&unit->functions);
    return ranges_find(&unit->functions, vaddr);
}

// ---- inlined calls --------------------------------------------------------------------------

static u32 add_scope(DebugInfo *info, Body *body, Dwarf_Die *die, u32 parent)
{
    DieRanges list;
    u64 low, high;
    if (body->scope_count >= SCOPES_MAX ||
        !grow32((void **)&body->scopes, &body->scope_capacity, body->scope_count,
                sizeof *body->scopes))
        return SCOPE_NONE;
    u32 scope = body->scope_count++;
    body->scopes[scope] = (Scope){ .die = *die,
                                   .parent = parent,
                                   .call_line = (u32)die_number(die, DW_AT_call_line),
                                   .call_file = (u32)die_number(die, DW_AT_call_file) };
    die_ranges_begin(&list, die, body->split);
    while (++info->steps < STEPS_MAX && die_ranges_next(&list, &low, &high)) {
        if (body->range_count >= SCOPES_MAX ||
            !grow32((void **)&body->ranges, &body->range_capacity, body->range_count,
                    sizeof *body->ranges))
            break;
        if (high > low)
            body->ranges[body->range_count++] = (ScopeRange){ low, high, scope, SCOPE_NONE };
    }
    return scope;
}

static void list_scopes(DebugInfo *info, Body *body, Dwarf_Die *parent, u32 scope, u32 depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_inlined_subroutine: {
            u32 inner = add_scope(info, body, &die, scope);
            if (inner != SCOPE_NONE)
                list_scopes(info, body, &die, inner, depth + 1);
            break;
        }
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            list_scopes(info, body, &die, scope, depth + 1);
            break;
        }
    } while (die_next_sibling(&die, &info->steps));
}

// Scopes are numbered from the outside in, so that of two equal ranges the inner comes last.
static int by_scope_low(const void *left, const void *right)
{
    const ScopeRange *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high > b->high ? -1 : 1;
    return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static void read_body(DebugInfo *info, Body *body, const SplitUnit *split)
{
    body->is_read = true;
    body->split = split;
    list_scopes(info, body, &body->die, SCOPE_NONE, 0);
    if (body->range_count)
        qsort(body->ranges, body->range_count, sizeof *body->ranges, by_scope_low);
    u32 open = SCOPE_NONE; // the innermost range that has not ended
    for (u32 i = 0; i < body->range_count; i++) {
        while (open != SCOPE_NONE && body->ranges[open].high <= body->ranges[i].low)
            open = body->ranges[open].outer;
        body->ranges[i].outer = open;
        open = i;
    }
}

Body *debug_info_body(DebugInfo *info, Unit *unit, u64 vaddr)
{
    const AddressRange *function = find_function(info, unit, vaddr);
    if (!function || function->index >= unit->body_count)
        return NULL;
    Body *body = &unit->bodies[function->index];
    if (!body->is_read)
        read_body(info, body, &unit->split);
    return body;
}

u32 body_scope(const Body *body, u64 vaddr)
{
    u32 low = 0, high = body->range_count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (body->ranges[middle].low <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    u32 at = low ? low - 1 : SCOPE_NONE;
    while (at != SCOPE_NONE && vaddr >= body->ranges[at].high)
        at = body->ranges[at].outer;
    return at == SCOPE_NONE ? SCOPE_NONE : body->ranges[at].scope;
}

// ---- entries --------------------------------------------------------------------------------

static const char *die_text(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    return dwarf_attr_integrate(die, attribute, &found) ? dwarf_formstring(&found) : NULL;
}

const char *die_linkage_name(Dwarf_Die *die)
{
    const char *name = die_text(die, DW_AT_linkage_name);
    return name ? name : die_text(die, DW_AT_MIPS_linkage_name);
}

const char *die_plain_name(Dwarf_Die *die)
{
    return die_text(die, DW_AT_name);
}

u64 die_number(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    Dwarf_Word value;
    if (!dwarf_attr_integrate(die, attribute, &found) || dwarf_formudata(&found, &value) != 0)
        return 0;
    return value;
}

static void read_line_sections(DebugInfo *info)
{
    Elf *elf = dwarf_getelf(info->file->dwarf);
    LineSections *sections = &info->line_sections;

    section_bytes(elf, ".debug_line", &sections->lines, &info->line_owned[0]);
    section_bytes(elf, ".debug_line_str", &sections->line_strings, &info->line_owned[1]);
    section_bytes(elf, ".debug_str", &sections->strings, &info->line_owned[2]);
}

// True when the unit's line table was read here.
static bool open_lines(DebugInfo *info, Unit *unit)
{
    if (unit->lines_tried)
        return unit->has_lines;
    unit->lines_tried = true;
    if (!info->line_sections.lines.data)
        read_line_sections(info);
    if (dwarf_hasattr(&unit->die, DW_AT_stmt_list))
        unit->has_lines = line_table_read(&unit->lines, &info->line_sections,
                                          die_number(&unit->die, DW_AT_stmt_list));
    return unit->has_lines;
}

SourceLine unit_line(DebugInfo *info, Unit *unit, u64 vaddr)
{
    SourceLine found = { .folder = unit_folder(unit) };
    int number;

    if (open_lines(info, unit)) {
        const LineRow *row = line_table_find(&unit->lines, vaddr);
        if (row) {
            found.path = line_table_file(&unit->lines, row->file);
            found.line = row->line;
        }
        return found;
    }
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, vaddr);
    if (!line)
        return found;
    found.path = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        found.line = (u32)number;
    return found;
}

const char *unit_file(DebugInfo *info, Unit *unit, u64 number)
{
    Dwarf_Files *files;
    size_t count;
    if (open_lines(info, unit))
        return line_table_file(&unit->lines, number);
    if (dwarf_getsrcfiles(&unit->die, &files, &count) != 0 || number >= count)
        return NULL;
    return dwarf_filesrc(files, number, NULL, NULL);
}

const char *unit_folder(Unit *unit)
{
    return die_text(&unit->die, DW_AT_comp_dir);
}

void debug_info_free(DebugInfo *info)
{
    for (u32 i = 0; i < info->unit_count; i++) {
        free_functions(&info->units[i]);
        split_unit_close(&info->units[i].split);
        line_table_free(&info->units[i].lines);
    }
    for (size_t i = 0; i < ARRAY_LEN(info->line_owned); i++)
        free(info->line_owned[i]);
    free(info->units);
    free(info->ranges.list);
    split_package_close(&info->package);
    *info = (DebugInfo){ 0 };
}
