// SPDX-License-Identifier: MIT
//
// What print.c is made of: cells in their forms, and tables of text.
#ifndef MUNINN_INSPECT_PRINT_CELLS_H
#define MUNINN_INSPECT_PRINT_CELLS_H

#include "inspect/print/print.h"

// cells.c
void put_text_cell(FILE *out, const Cell *cell);
void put_json_cell(FILE *out, const Cell *cell);
void put_csv_string(FILE *out, const char *text);
void put_csv_cell(FILE *out, const Cell *cell);

enum { COLUMN_MAX = 64 };

#define COLOUR_DIM "\x1b[2m"
#define COLOUR_STRONG "\x1b[1m"
#define COLOUR_OFF "\x1b[0m"

// A row: its cells, or a note that stands below the row before.
typedef struct TextRow {
    char **cells; // [0] alone in a note
    bool is_note;
} TextRow;

// text_table.c: rows are kept until the table ends, because a column is as wide as its widest
// cell; of a very long table the first rows decide.
typedef struct TextTable {
    FILE *out;
    bool colour;
    u32 fit_width;      // of the terminal; 0: lines may be of any length
    const Column *columns;
    u32 column_count;
    u32 widths[COLUMN_MAX];
    bool is_number[COLUMN_MAX]; // all of its cells so far
    TextRow *rows;      // the first is the heading
    size_t row_count, row_capacity;
    bool has_heading;   // it has been printed
} TextTable;

void text_table_begin(TextTable *table, const Column *columns, u32 column_count);
void text_table_row(TextTable *table, const Cell *cells);
void text_table_note(TextTable *table, const char *text);
void text_table_flush(TextTable *table);

#endif
