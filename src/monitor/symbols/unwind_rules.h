// SPDX-License-Identifier: MIT
//
// What the unwind tables of a loaded file say of a place in its code: where the caller's registers
// are. Only rules of the plain kind are given, a register and a number.
#ifndef MUNINN_MONITOR_SYMBOLS_UNWIND_RULES_H
#define MUNINN_MONITOR_SYMBOLS_UNWIND_RULES_H

#include "monitor/symbols/symbols.h"

typedef struct Elf Elf; // libelf's

typedef struct SavedRegister {
    u32 number;
    i64 distance; // from the CFA
} SavedRegister;

typedef struct UnwindRules {
    u32 cfa_register;
    i64 cfa_offset;
    bool is_signal_frame; // the caller was interrupted: the kernel has saved all registers
    SavedRegister saved[UNWIND_REGISTERS];
    u32 saved_count;
} UnwindRules;

// False: the file says nothing of this place, or nothing plain.
bool unwind_rules_find(Elf *image, u64 pc, UnwindRules *ret_rules);
// The same, by the reader. symbols.c
bool symbols_rules(Symbols *symbols, CodePlace place, UnwindRules *ret_rules);

#endif
