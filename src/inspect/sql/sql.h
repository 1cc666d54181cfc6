// SPDX-License-Identifier: MIT
//
// A recording as SQL tables, read-only. The tables are virtual: a row is made when a query
// reads it, and what a query asks of allocations (a time, a site, a context, a size) is used
// to read only what can match.
//
//   SqlDatabase *db = sql_open(recording, &error);
//   sql_run(db, "SELECT …", &limits, take_row, arg, &outcome, &error);
//
// What must stay true
//   C1  A text, from whomever, changes nothing and reaches no file: SELECT alone is allowed,
//       no ATTACH, no pragma that sets anything, no extension.
//   C2  It ends: rows, time and memory have limits.
//   C3  One thread at a time uses a database, and the recording it stands on.
#ifndef MUNINN_INSPECT_SQL_SQL_H
#define MUNINN_INSPECT_SQL_SQL_H

#include "recording/recording.h"

typedef struct SqlDatabase SqlDatabase;

typedef enum SqlType { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT } SqlType;

// Text is UTF-8 as far as the recording's is, without zero bytes; borrowed during the call.
typedef struct SqlValue {
    SqlType type;
    i64 integer;
    double real;
    const char *text;
} SqlValue;

typedef struct SqlLimits {
    u64 rows;    // 0: no limit
    u32 time_ms; // 0: no limit
    u64 from_ns, to_ns; // :from and :to in the text; to_ns 0: the end of the run
} SqlLimits;

typedef struct SqlOutcome {
    u64 rows;
    bool is_cut; // there were more rows than the limit
    u64 elapsed_ns;
    u64 events_since_ns; // it asked for blocks or events, of which those before were not kept; or 0
} SqlOutcome;

enum { SQL_COLUMNS_MAX = 64 }; // of a result

// Called once with values NULL, for the names of the columns, then for every row. False stops.
typedef bool SqlRowFn(void *arg, u32 column_count, const char *const *names,
                      const SqlValue *values);

// The recording must outlive it. NULL: *ret_error (to be freed) says why.
SqlDatabase *sql_open(Recording *recording, char **ret_error);
void sql_close(SqlDatabase *database);

// Runs one SELECT. False: *ret_error (to be freed) is a line for the person who wrote the text;
// rows may have been given before. ret_outcome may be NULL.
bool sql_run(SqlDatabase *database, const char *text, const SqlLimits *limits, SqlRowFn *fn,
             void *arg, SqlOutcome *ret_outcome, char **ret_error);

// Ends a query that runs in another thread, soon.
void sql_interrupt(SqlDatabase *database);

typedef struct SqlColumn {
    const char *name, *type, *help;
} SqlColumn;

typedef struct SqlTable {
    const char *name, *help;
    const SqlColumn *columns;
    u32 column_count;
} SqlTable;

// For help and completion.
const SqlTable *sql_tables(size_t *ret_count);

#endif
