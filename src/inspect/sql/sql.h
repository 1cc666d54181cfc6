// SPDX-License-Identifier: MIT
//
// A recording as SQL tables, read-only. The tables are virtual: a row is made when a query
// reads it, and what a query asks of allocations (a time, a site, a context, a size) is used
// to read only what can match.
//
//   SqlTask *task = sql_begin(recording, "SELECT …", &limits, &error);
//   sql_end(task, take_row, arg, &outcome, &error);
//
// A query runs in a process of its own (apart.c), forked from this one, so that any query can be
// ended: SQLite looks at the clock between its operations, but a single one (a LIKE, a printf) may
// take as long as it likes.
//
// What must stay true
//   C1  A text, from whomever, changes nothing and reaches no file: SELECT alone is allowed,
//       no ATTACH, no pragma that sets anything, no extension; and of functions and tables those
//       alone that are listed (functions.def).
//   C2  It ends: rows, time and memory have limits, which are the kernel's where SQLite's fail.
//   C3  One thread at a time uses a database, and the recording it stands on.
//   C4  Where other threads run, only the process of a query calls SQLite: fork() may find a lock
//       of SQLite's held by another thread, and the child would wait for it for ever.
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
    u64 memory_bytes;   // that the query's process may take; 0: no limit
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

// A query that runs in a process of its own. When this returns, the recording may be used again,
// also by other threads. NULL: *ret_error (to be freed) says why.
typedef struct SqlTask SqlTask;
SqlTask *sql_begin(Recording *recording, const char *text, const SqlLimits *limits,
                   char **ret_error);
// Takes its rows until it has ended, or fn returns false, or its time is over; frees it. False:
// *ret_error (to be freed) is a line for the person who wrote the text; rows may have been given
// before. ret_outcome may be NULL.
bool sql_end(SqlTask *task, SqlRowFn *fn, void *arg, SqlOutcome *ret_outcome, char **ret_error);

// The same in this process. The recording must outlive the database. NULL: *ret_error (to be freed)
// says why.
SqlDatabase *sql_open(Recording *recording, char **ret_error);
void sql_close(SqlDatabase *database);
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
