// SPDX-License-Identifier: MIT
//
// Which variable an address is in: where a global one was declared, and which local
// one lies at a distance from the canonical frame address (CFA) of a frame.
#ifndef MUNINN_MONITOR_SYMBOLS_VARIABLES_H
#define MUNINN_MONITOR_SYMBOLS_VARIABLES_H

#include "monitor/symbols/debug_info.h"
#include "monitor/symbols/variable_part.h"

typedef struct Variable {
    const char *name;
    const char *file;   // path of the declaration, NULL: not known
    const char *folder; // that it is relative to
    u32 line;
    u64 offset; // in the variable
    u64 size;
    char part[VARIABLE_PART_MAX]; // that has the byte: `[2].items[5]`; "": only the whole has it
    u64 part_offset;              // in that part
} Variable;

// The declaration of the global variable that begins at vaddr. False: no debug info has it. It
// reads every unit, once.
typedef struct Globals {
    AddressRanges ranges;
    Dwarf_Die *dies;
    u32 *units;
    u32 count, capacity;
    bool is_read;
} Globals;

bool variables_find_global(Globals *globals, DebugInfo *info, u64 vaddr, Variable *ret_variable);
void variables_free(Globals *globals);

// The variable or parameter that has the byte at `distance` from the CFA in the frame of pc. The
// image is the loaded file, which has the unwind tables; NULL: it is not there.
bool variables_find_local(DebugInfo *info, Elf *image, u64 pc, i64 distance,
                          Variable *ret_variable);

#endif
