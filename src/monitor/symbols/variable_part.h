// SPDX-License-Identifier: MIT
//
// Which part of a variable a byte is in: `[2].items[5]`, by the types of the debug info.
#ifndef MUNINN_MONITOR_SYMBOLS_VARIABLE_PART_H
#define MUNINN_MONITOR_SYMBOLS_VARIABLE_PART_H

#include <elfutils/libdw.h>

#include "base/types.h"

enum { VARIABLE_PART_MAX = 256 };

// Goes into arrays, structures and bases of classes, as far as the byte lies in one member alone:
// not into a union, padding, or bit fields that share it. Writes what follows the variable's name,
// "" if the byte is only somewhere inside. Returns the distance from where that part begins.
u64 variable_part(Dwarf_Die *variable, u64 offset, char ret_part[VARIABLE_PART_MAX]);

#endif
