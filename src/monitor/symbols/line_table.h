// SPDX-License-Identifier: MIT
//
// The line table of one unit, decoded here: libdw's takes 0.19 s for a million rows, which is
// most of what a cold question costs, and 0.025 s are enough (bench: tests/symbols/run speed).
// A table with something in it that this does not know is left to libdw.
#ifndef MUNINN_MONITOR_SYMBOLS_LINE_TABLE_H
#define MUNINN_MONITOR_SYMBOLS_LINE_TABLE_H

#include "monitor/symbols/address_ranges.h"
#include "monitor/symbols/section_image.h"

typedef struct LineRow {
    u64 address;
    u32 file, line;
} LineRow;

typedef struct LineFile {
    const char *name;
    u64 folder;
    char *path; // put together when it is first asked for
} LineFile;

typedef struct LineSequence { // rows with rising addresses
    size_t first, end;
} LineSequence;

typedef struct LineTable {
    LineRow *rows;
    size_t row_count, row_capacity;
    LineSequence *sequences;
    size_t sequence_count, sequence_capacity;
    AddressRanges ranges; // of the sequences
    const char **folders;
    size_t folder_count, folder_capacity;
    LineFile *files; // by the number in the table
    size_t file_count, file_capacity;
} LineTable;

typedef struct LineSections {
    PlainSection lines, line_strings, strings;
} LineSections;

// False: it cannot be read here; then the table is empty. It points into the sections.
bool line_table_read(LineTable *table, const LineSections *sections, u64 offset);
void line_table_free(LineTable *table);

// NULL: the address has no line.
const LineRow *line_table_find(const LineTable *table, u64 address);
// NULL: there is no such file. Relative to the folder in which the compiler ran, or absolute.
const char *line_table_file(LineTable *table, u64 number);

#endif
