// SPDX-License-Identifier: MIT
//
// Numbers for names, from 1 on in the order of their first use. Private to callgrind/. A zeroed
// table is an empty one.
#ifndef MUNINN_MONITOR_CALLGRIND_NAMES_H
#define MUNINN_MONITOR_CALLGRIND_NAMES_H

#include "base/types.h"

typedef struct NameTable {
    char **names;  // by number - 1
    u32 count, capacity;
    u32 *slots;    // numbers, by hash; 0: empty
    u32 slot_count; // a power of two, twice the names at least
} NameTable;

// 0: no memory.
u32 names_number(NameTable *table, const char *name);
static inline const char *names_name(const NameTable *table, u32 number)
{
    return table->names[number - 1];
}
void names_free(NameTable *table);

#endif
