// SPDX-License-Identifier: MIT
//
// Modules and where they are mapped. A module that a place may name stays for good; one
// that nobody asked about goes with its last mapping, so that a client that maps a million
// data files leaves nothing behind. Nothing here opens a file.
#ifndef MUNINN_MONITOR_SYMBOLS_MODULE_TABLE_H
#define MUNINN_MONITOR_SYMBOLS_MODULE_TABLE_H

#include "base/map.h"
#include "base/vec.h"
#include "monitor/symbols/reader.h"

// One file, as it was when it was mapped.
typedef struct Module {
    ModuleSpec spec;   // its path is kept by the caller, once for each text
    u32 known_to;      // the generation of the reader that has it defined; 0: none
    u32 mapping_count;
    u32 next;          // the next module of the same path and inode, or the next free one; 0: none
    bool is_asked;     // a place names it, or the reader knows it
    bool is_jit;       // anonymous code; then offsets are addresses
    bool no_data;      // reading its variables killed a reader
    Map frames;        // offset → what symbols.c found there
} Module;

typedef struct Mapping {
    u64 start, end;
    u64 file_offset;
    u32 module;
} Mapping;

// A mapping of code that is gone.
typedef struct KeptMapping {
    Mapping mapping;
    u32 unloading; // the number of the unmapping that took it
} KeptMapping;

typedef struct ModuleTable {
    Vec modules; // Module; number 0 is not used
    u32 first_free;
    Map by_file; // path and inode → the newest such module
    Mapping *mappings; // by start, never overlapping
    size_t mapping_count, mapping_capacity;
    Vec kept; // KeptMapping, by number
} ModuleTable;

void module_table_init(ModuleTable *table);
void module_table_free(ModuleTable *table);

Module *module_at(const ModuleTable *table, u32 number); // NULL: there is none

// `path` is that of the mapping, kept by the caller for as long as the table lives.
void module_table_map(ModuleTable *table, const SymbolsMapping *mapping, const char *path);
void module_table_unmap(ModuleTable *table, u64 start, u64 size);
// To be called before module_table_unmap(): its mappings are found by that number afterwards.
// Numbers grow from call to call.
void module_table_keep(ModuleTable *table, u64 start, u64 size, u32 unloading);

// The mapping around an address; NULL: none.
const Mapping *module_table_find(const ModuleTable *table, u64 address);
// The same of those that this unmapping took.
const Mapping *module_table_find_kept(const ModuleTable *table, u64 address, u32 unloading);
bool module_table_is_live(const ModuleTable *table, CodePlace place);

// Where the client has the ELF header of a module, 0: nowhere.
u64 module_table_header(const ModuleTable *table, u32 number);
// The mapping of an object's ELF header at or below an address: the headers say where its data
// is, whatever the mappings do. Uninitialised variables lie behind the file's mappings, in memory
// that has no file. NULL: there is no object that may have it.
const Mapping *module_table_header_below(const ModuleTable *table, u64 address);

#endif
