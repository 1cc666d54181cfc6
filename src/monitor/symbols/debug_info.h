// SPDX-License-Identifier: MIT
//
// An index over DWARF, built as far as it is asked: which unit covers an address,
// which functions a unit has, which functions were inlined where in a function.
//
// Glossary
//   unit      a compilation unit; when it is split, its functions are in another file
//   function  a range of addresses of a concrete DW_TAG_subprogram; a function cut into hot and
//             cold parts has two
//   body      that subprogram's tree of inlined calls
//   scope     one inlined call in a body
#ifndef MUNINN_MONITOR_SYMBOLS_DEBUG_INFO_H
#define MUNINN_MONITOR_SYMBOLS_DEBUG_INFO_H

#include "monitor/symbols/address_ranges.h"
#include "monitor/symbols/debug_file.h"
#include "monitor/symbols/die_ranges.h"
#include "monitor/symbols/line_table.h"

#define SCOPE_NONE ~0u

typedef struct Scope {
    Dwarf_Die die;
    u32 parent; // SCOPE_NONE: inlined into the function itself
    u32 call_line;
    u32 call_file;
} Scope;

typedef struct ScopeRange {
    u64 low, high;
    u32 scope;
    u32 outer; // the range around it, by index; SCOPE_NONE
} ScopeRange;

typedef struct Body {
    Dwarf_Die die;
    const SplitUnit *split;
    bool is_read;
    Scope *scopes;
    u32 scope_count, scope_capacity;
    ScopeRange *ranges; // by low, the longer first
    u32 range_count, range_capacity;
} Body;

typedef struct Unit {
    Dwarf_Die die;       // has the line table; the skeleton when the unit is split
    Dwarf_Die tree;      // the root of the functions
    SplitUnit split;
    bool is_opened;      // tree is found
    bool has_tree;
    bool is_shallow;     // functions outside of other functions and types are listed
    bool is_deep;        // all are
    Body *bodies;
    u32 body_count, body_capacity;
    AddressRanges functions;
    LineTable lines;
    bool lines_tried, has_lines; // else libdw's are used
} Unit;

typedef struct DebugInfo {
    DebugFile *file;
    SplitPackage package;
    LineSections line_sections;
    void *line_owned[3];
    Unit *units;
    u32 unit_count, unit_capacity;
    AddressRanges ranges;
    bool is_indexed;
    u64 steps; // entries looked at for the question at hand
} DebugInfo;

void debug_info_init(DebugInfo *info, DebugFile *file);
void debug_info_free(DebugInfo *info);

// NULL: no unit covers it.
Unit *debug_info_unit(DebugInfo *info, u64 vaddr);
// The root of the unit's functions and variables. False: it is in a file that is not there.
bool debug_info_tree(DebugInfo *info, Unit *unit, Dwarf_Die *ret_tree);
// The function of the unit around an address, NULL: none. Its body is read.
Body *debug_info_body(DebugInfo *info, Unit *unit, u64 vaddr);
// The innermost inlined call around an address, SCOPE_NONE: none.
u32 body_scope(const Body *body, u64 vaddr);

// The name the linker knows, or NULL; and the plain one, or NULL.
const char *die_linkage_name(Dwarf_Die *die);
const char *die_plain_name(Dwarf_Die *die);
// An unsigned attribute of a die or its origin; 0 when it has none.
u64 die_number(Dwarf_Die *die, unsigned attribute);
// Goes on to the next entry; false: there is none, or too many steps were taken. It must lie behind
// this one, or a file could lead us in a circle.
bool die_next_sibling(Dwarf_Die *die, u64 *steps);

typedef struct SourceLine {
    const char *path;   // NULL: not known
    const char *folder; // in which the compiler ran: a relative path begins there
    u32 line;           // 0: not known
} SourceLine;

SourceLine unit_line(DebugInfo *info, Unit *unit, u64 vaddr);
// A source file by its number in the unit's line table, or NULL.
const char *unit_file(DebugInfo *info, Unit *unit, u64 number);
const char *unit_folder(Unit *unit); // NULL: not known

#endif
