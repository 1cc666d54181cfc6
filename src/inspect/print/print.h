// SPDX-License-Identifier: MIT
//
// Answers on standard output, for people and for programs: what a command has found is
// said once, as facts and tables of typed cells, and printed as aligned text, JSON or CSV.
// People see units, percent and no control characters; programs see plain numbers (bytes,
// nanoseconds) under keys that stay as they are.
//
//   Printer *p = printer_new(stdout, PRINT_TEXT);
//   printer_fact(p, "peak_bytes", "peak", cell_bytes(4096));
//   printer_table(p, "sites", NULL, columns, ARRAY_LEN(columns));
//   printer_row(p, cells); …
//   printer_more(p, 12, 81920, NULL);        // "12 more (80.0 KiB)"
//   return printer_end(p);
#ifndef MUNINN_INSPECT_PRINT_PRINT_H
#define MUNINN_INSPECT_PRINT_PRINT_H

#include <stdio.h>

#include "base/types.h"

typedef enum PrintForm { PRINT_TEXT, PRINT_JSON, PRINT_CSV } PrintForm;

typedef enum CellKind {
    CELL_NONE,    // not known, or not so: null, and a dash
    CELL_TEXT,
    CELL_LIST,    // of texts: an array in JSON, joined by ; in CSV
    CELL_BYTES,   // u64
    CELL_CHANGE,  // i64 bytes, with a sign
    CELL_COUNT,   // u64
    CELL_NUMBER,  // i64
    CELL_NS,      // u64: a time or a length of it
    CELL_PERCENT, // real: 0.25 is 25 %, and 25 in JSON and CSV
    CELL_REAL,
    CELL_RATE,    // real: bytes a second, with a sign
    CELL_ADDRESS, // u64: hexadecimal, in JSON a string
    CELL_BOOL,
    CELL_SERIES,  // u64 values: a sparkline, an array in JSON
} CellKind;

typedef struct Cell {
    CellKind kind;
    union {
        const char *text;
        u64 count;
        i64 number;
        double real;
        struct {
            const char *const *items;
            u32 item_count;
        };
        struct {
            const u64 *values;
            u32 value_count;
        };
    };
} Cell;

// Texts and lists are borrowed until the call that takes the cell returns.
static inline Cell cell_none(void)
{
    return (Cell){.kind = CELL_NONE};
}

static inline Cell cell_text(const char *text)
{
    return text ? (Cell){.kind = CELL_TEXT, .text = text} : cell_none();
}

static inline Cell cell_u64(CellKind kind, u64 value)
{
    return (Cell){.kind = kind, .count = value};
}

static inline Cell cell_i64(CellKind kind, i64 value)
{
    return (Cell){.kind = kind, .number = value};
}

static inline Cell cell_real(CellKind kind, double value)
{
    return (Cell){.kind = kind, .real = value};
}

static inline Cell cell_share(double part, double whole)
{
    return whole > 0 ? cell_real(CELL_PERCENT, part / whole) : cell_none();
}

static inline Cell cell_list(const char *const *items, u32 count)
{
    return (Cell){.kind = CELL_LIST, .items = items, .item_count = count};
}

typedef enum ColumnFlags {
    COLUMN_RIGHT = 1,     // numbers
    COLUMN_DATA_ONLY = 2, // people see it otherwise, or not
    COLUMN_TEXT_ONLY = 4, // programs can reckon it themselves
    COLUMN_STRONG = 8,    // what the eye looks for first
    COLUMN_PLACE = 16,    // "function (file:line)": a terminal that is too narrow has less of it
} ColumnFlags;

typedef struct Column {
    const char *key;     // JSON and CSV
    const char *heading; // for people
    u32 flags;           // ColumnFlags
} Column;

typedef struct Printer Printer;

// Colours if `out` is a terminal that has them and NO_COLOR is not set.
Printer *printer_new(FILE *out, PrintForm form);
PrintForm printer_form(const Printer *printer);
u32 printer_width(const Printer *printer); // of the terminal; 100 if there is none

// A line "label  value"; a member of the JSON object; in CSV of a command without a table a
// row. A label of NULL is for programs only.
void printer_fact(Printer *printer, const char *key, const char *label, Cell value);
// A line for people only.
void printer_line(Printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Starts a table; the one before it ends. `title` may be NULL, `key` stays the caller's. A CSV has
// the first table only.
void printer_table(Printer *printer, const char *key, const char *title, const Column *columns,
                   u32 column_count);
void printer_row(Printer *printer, const Cell *cells);
// A line below the row, for people only.
void printer_note(Printer *printer, const char *text);
// What was left out of the table: so many rows, their bytes, or any other sum if `what` is not
// NULL. Nothing if there are none. In JSON the members KEY_more_rows and KEY_more_bytes.
void printer_more(Printer *printer, u64 rows, u64 bytes, const char *what);

// Prints what is left. False: the output could not be written, and that has been told.
bool printer_end(Printer *printer);

// "12.3 KiB", "1.5 s", "25.0%". Returns text.
enum { VALUE_BYTES_MAX = 48 };
const char *value_bytes(u64 bytes, char *text);
const char *value_change(i64 bytes, char *text);
const char *value_ns(u64 ns, char *text);
const char *value_count(u64 count, char *text); // 1,234,567
const char *value_share(double share, char *text);

// A JSON string with its quotes. What is not UTF-8 becomes U+FFFD.
void json_string(FILE *out, const char *text);
// Text without anything that a terminal would obey: \n, \x1b…
void plain_text(FILE *out, const char *text);
// Columns that it takes on a terminal, a character one.
u32 plain_width(const char *text);
// The length of the UTF-8 character at `text`, or 0 if it is none (also overlong, surrogate).
u32 utf8_length(const char *text);

#endif
