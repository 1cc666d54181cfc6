// SPDX-License-Identifier: MIT
//
// A table of the recording: its columns, and how a cursor walks its rows. vtab.c turns these
// into SQLite's virtual tables.
#ifndef MUNINN_INSPECT_SQL_TABLE_H
#define MUNINN_INSPECT_SQL_TABLE_H

#include <sqlite3.h>

#include "inspect/sql/sql.h"
#include "inspect/stack/stack.h"

typedef struct TableCursor TableCursor;

typedef struct TableSpec {
    SqlTable shape;
    u64 bounded; // bits of columns whose bounds start() uses
    u64 seeks;   // those of them that also spare the reading of other rows
    u64 (*row_count)(Recording *recording); // about
    // Goes before the first row; returns an SQLite code.
    int (*start)(TableCursor *cursor);
    // Goes to the next row. False: there is none, or cursor->status says why not.
    bool (*step)(TableCursor *cursor);
    void (*column)(TableCursor *cursor, u32 column, sqlite3_context *context);
    void (*stop)(TableCursor *cursor); // frees what start and step took; may be NULL
} TableSpec;

// What the query asks of a column, as far as whole numbers say it.
typedef struct Bounds {
    i64 min, max;
} Bounds;

enum { TABLE_COLUMNS_MAX = 24 };

struct TableCursor {
    sqlite3_vtab_cursor base; // SQLite's, first
    const TableSpec *table;
    SqlDatabase *database;
    Recording *recording;
    Bounds bounds[TABLE_COLUMNS_MAX];
    u64 row;      // of arrays: the next one
    u64 end;
    u64 rowid;
    bool at_end;
    int status;   // an SQLite code
    Stack stack;  // of stack_context
    u32 stack_context;
    u32 level;
    bool in_stack; // of frames: `level` is a frame of `stack`
    void *data;   // of the table
};

extern const TableSpec sql_array_tables[], sql_event_tables[];
extern const size_t sql_array_table_count, sql_event_table_count;

struct SqlDatabase {
    sqlite3 *handle;
    Recording *recording;
    u64 deadline_ns;    // of the query that runs; 0: none
    bool is_late;
    bool lacks_events;  // the query that runs wants some that were not kept
};

// True: the query has used up its time. For loops that SQLite does not see.
bool sql_is_late(SqlDatabase *database);

int vtab_register(SqlDatabase *database, const TableSpec *table);

// NULL where text is NULL.
void result_text(sqlite3_context *context, const char *text);
const char *space_name(Space space);

#endif
