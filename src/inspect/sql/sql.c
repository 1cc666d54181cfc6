// SPDX-License-Identifier: MIT
//
// The database: an empty one in memory with the virtual tables, closed to everything but
// reading once they are there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspect/sql/table.h"

enum {
    TEXT_BYTES_MAX = 1 << 20,   // of a query
    VALUE_LENGTH_MAX = 1 << 24, // of a value that it makes
    PATTERN_BYTES_MAX = 1000,   // of LIKE and GLOB, whose time is a power of the stars in it
    OPERATIONS_PER_LOOK = 5000, // at the clock
};
static const sqlite3_int64 heap_bytes_max = 256ll << 20; // of SQLite in the process

static u64 clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

bool sql_is_late(SqlDatabase *database)
{
    if (database->deadline_ns && clock_ns() > database->deadline_ns)
        database->is_late = true;
    return database->is_late;
}

static int look_at_clock(void *arg)
{
    return sql_is_late(arg);
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; name && i < count; i++) {
        if (sqlite3_stricmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool function_is_allowed(const char *name)
{
    static const char *const names[] = {
#define FUNCTION(name) name,
#include "inspect/sql/functions.def"
    };

    return is_among(name, names, ARRAY_LEN(names));
}

// A library's SQLite may bring tables of its own: pages of files, statements of the process.
static bool table_is_allowed(const char *name)
{
    static const char *const names[] = {
        "json_each",         "json_tree",         "sqlite_master",     "sqlite_schema",
        "pragma_table_info", "pragma_table_xinfo", "pragma_table_list", "pragma_function_list",
    };
    size_t count;
    const SqlTable *tables = sql_tables(&count);

    for (size_t i = 0; i < count; i++) {
        if (sqlite3_stricmp(name, tables[i].name) == 0)
            return true;
    }
    return is_among(name, names, ARRAY_LEN(names));
}

// What SQLite asks before it compiles anything. It is a list of what is allowed.
static int authorize(void *arg, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    static const char *const pragmas[] = {"table_info", "table_xinfo", "table_list",
                                          "function_list"};
    bool is_allowed = false;

    (void)arg;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: is_allowed = true; break;
    // Without a column it may be the name of a part of the query itself: WITH c AS ….
    case SQLITE_READ: is_allowed = !second || !*second || table_is_allowed(first); break;
    case SQLITE_FUNCTION: is_allowed = function_is_allowed(second); break;
    case SQLITE_PRAGMA: is_allowed = is_among(first, pragmas, ARRAY_LEN(pragmas)); break;
    }
    return is_allowed ? SQLITE_OK : SQLITE_DENY;
}

static int close_to_writing(SqlDatabase *database)
{
    sqlite3_limit(database->handle, SQLITE_LIMIT_LENGTH, VALUE_LENGTH_MAX);
    sqlite3_limit(database->handle, SQLITE_LIMIT_SQL_LENGTH, TEXT_BYTES_MAX);
    sqlite3_limit(database->handle, SQLITE_LIMIT_COLUMN, SQL_COLUMNS_MAX);
    sqlite3_limit(database->handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(database->handle, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_limit(database->handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX);
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, NULL);
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_progress_handler(database->handle, OPERATIONS_PER_LOOK, look_at_clock, database);
    return sqlite3_set_authorizer(database->handle, authorize, NULL);
}

// SQLite makes a table of its own when a query first names it, and asks the authorizer for that as
// if the query had said CREATE TABLE. So it is made before. Without JSON it is not there.
static void add_own_tables(SqlDatabase *database)
{
    static const char *const queries[] = {
        "SELECT 1 FROM json_each('[]')",
        "SELECT 1 FROM json_tree('[]')",
        "SELECT 1 FROM pragma_table_info('sites')",
        "SELECT 1 FROM pragma_table_xinfo('sites')",
        "SELECT 1 FROM pragma_table_list LIMIT 0",
        "SELECT 1 FROM pragma_function_list LIMIT 0",
    };

    for (size_t i = 0; i < ARRAY_LEN(queries); i++)
        sqlite3_exec(database->handle, queries[i], NULL, NULL, NULL);
}

static int add_tables(SqlDatabase *database)
{
    int status = SQLITE_OK;

    for (size_t i = 0; i < sql_event_table_count && status == SQLITE_OK; i++)
        status = vtab_register(database, &sql_event_tables[i]);
    for (size_t i = 0; i < sql_array_table_count && status == SQLITE_OK; i++)
        status = vtab_register(database, &sql_array_tables[i]);
    return status;
}

SqlDatabase *sql_open(Recording *recording, char **ret_error)
{
    SqlDatabase *database = calloc(1, sizeof(*database));

    if (!database) {
        *ret_error = strdup("no memory for the tables");
        return NULL;
    }
    database->recording = recording;
    sqlite3_hard_heap_limit64(heap_bytes_max);
    int status = sqlite3_open_v2(":memory:", &database->handle,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
                                 NULL);
    if (status == SQLITE_OK)
        status = add_tables(database);
    if (status == SQLITE_OK)
        add_own_tables(database);
    if (status == SQLITE_OK)
        status = close_to_writing(database);
    if (status != SQLITE_OK) {
        *ret_error = strdup(database->handle ? sqlite3_errmsg(database->handle) : "no memory");
        sql_close(database);
        return NULL;
    }
    return database;
}

void sql_close(SqlDatabase *database)
{
    sqlite3_close(database->handle);
    free(database);
}

void sql_interrupt(SqlDatabase *database)
{
    sqlite3_interrupt(database->handle);
}

// -------------------------------------------------------------------------- running

typedef struct Run {
    SqlDatabase *database;
    sqlite3_stmt *statement;
    const SqlLimits *limits;
    SqlRowFn *fn;
    void *arg;
    u32 column_count;
    const char *names[SQL_COLUMNS_MAX];
    SqlOutcome outcome;
} Run;

// A blob, as x'…' and some functions make, is shown as SQL would write it.
static const char *blob_text(const u8 *bytes, int size, char **ret_owned)
{
    char *text = malloc((size_t)size * 2 + 4);
    char *at = text;

    if (!text)
        return "";
    at += sprintf(at, "x'");
    for (int i = 0; i < size; i++)
        at += sprintf(at, "%02x", bytes[i]);
    strcpy(at, "'");
    *ret_owned = text;
    return text;
}

static SqlValue value_of(sqlite3_stmt *statement, int column, char **ret_owned)
{
    SqlValue value = {.type = SQL_NULL};

    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        value.type = SQL_INTEGER;
        value.integer = sqlite3_column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        value.type = SQL_REAL;
        value.real = sqlite3_column_double(statement, column);
        break;
    case SQLITE_TEXT:
        value.type = SQL_TEXT;
        value.text = (const char *)sqlite3_column_text(statement, column);
        break;
    case SQLITE_BLOB:
        value.type = SQL_TEXT;
        value.text = blob_text(sqlite3_column_blob(statement, column),
                               sqlite3_column_bytes(statement, column), ret_owned);
        break;
    }
    if (value.type == SQL_TEXT && !value.text)
        value.text = "";
    return value;
}

static bool give_row(Run *run)
{
    SqlValue values[SQL_COLUMNS_MAX];
    char *owned[SQL_COLUMNS_MAX] = {NULL};

    for (u32 i = 0; i < run->column_count; i++)
        values[i] = value_of(run->statement, (int)i, &owned[i]);
    bool go_on = run->fn(run->arg, run->column_count, run->names, values);
    for (u32 i = 0; i < run->column_count; i++)
        free(owned[i]);
    return go_on;
}

// Those of the parameters that the text has; all others are NULL.
static void bind_range(const Run *run)
{
    u64 end_ns = recording_last(run->database->recording).ns + 1;
    u64 to_ns = run->limits->to_ns ? run->limits->to_ns : end_ns;
    int from = sqlite3_bind_parameter_index(run->statement, ":from");
    int to = sqlite3_bind_parameter_index(run->statement, ":to");

    if (from)
        sqlite3_bind_int64(run->statement, from, (i64)run->limits->from_ns);
    if (to)
        sqlite3_bind_int64(run->statement, to, (i64)to_ns);
}

static int run_statement(Run *run)
{
    int status;

    bind_range(run);
    run->column_count = (u32)sqlite3_column_count(run->statement);
    for (u32 i = 0; i < run->column_count; i++)
        run->names[i] = sqlite3_column_name(run->statement, (int)i);
    if (!run->fn(run->arg, run->column_count, run->names, NULL))
        return SQLITE_DONE;
    while ((status = sqlite3_step(run->statement)) == SQLITE_ROW) {
        if (run->limits->rows && run->outcome.rows == run->limits->rows) {
            run->outcome.is_cut = true;
            return SQLITE_DONE;
        }
        run->outcome.rows++;
        if (!give_row(run))
            return SQLITE_DONE;
    }
    return status;
}

// SQLite's words, and where it could not go on; ours where the limits or the law did it.
static char *explain(Run *run, int status, const char *text)
{
    char *line = NULL;
    int offset = sqlite3_error_offset(run->database->handle);
    const char *message = sqlite3_errmsg(run->database->handle);
    int written;

    if (run->database->is_late)
        written = asprintf(&line, "the query took longer than %u ms", run->limits->time_ms);
    else if (status == SQLITE_AUTH)
        written = asprintf(&line, "only SELECT is allowed: a recording is not written to");
    else if (status == SQLITE_NOMEM)
        written = asprintf(&line, "the query needs more memory than it may have");
    else if (status == SQLITE_IOERR || status == SQLITE_FULL)
        written = asprintf(&line, "the query needs more room in temporary files than there is");
    else if (status == SQLITE_INTERRUPT)
        written = asprintf(&line, "the query was stopped");
    else if (offset >= 0 && (size_t)offset < strlen(text))
        written = asprintf(&line, "%s, at character %d: %.40s", message, offset + 1, text + offset);
    else
        written = asprintf(&line, "%s", message);
    return written < 0 ? NULL : line;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n;")] == 0;
}

bool sql_run(SqlDatabase *database, const char *text, const SqlLimits *limits, SqlRowFn *fn,
             void *arg, SqlOutcome *ret_outcome, char **ret_error)
{
    Run run = {.database = database, .limits = limits, .fn = fn, .arg = arg};
    const char *tail = "";
    u64 start = clock_ns();

    database->is_late = database->lacks_events = false;
    database->deadline_ns = limits->time_ms ? start + limits->time_ms * 1000000ull : 0;
    int status = sqlite3_prepare_v2(database->handle, text, -1, &run.statement, &tail);
    if (status == SQLITE_OK && (!run.statement || !is_blank(tail))) {
        *ret_error = strdup(run.statement ? "one statement at a time" : "there is no statement");
        sqlite3_finalize(run.statement);
        return false;
    }
    if (status == SQLITE_OK)
        status = run_statement(&run);
    run.outcome.elapsed_ns = clock_ns() - start;
    if (database->lacks_events)
        run.outcome.events_since_ns = recording_events_kept_since_ns(database->recording);
    bool ok = status == SQLITE_DONE;
    if (!ok)
        *ret_error = explain(&run, status, text);
    sqlite3_finalize(run.statement);
    if (ret_outcome)
        *ret_outcome = run.outcome;
    return ok;
}

const SqlTable *sql_tables(size_t *ret_count)
{
    static SqlTable shapes[32];
    static size_t count;

    if (count == 0) {
        size_t n = 0;
        for (size_t i = 0; i < sql_event_table_count; i++)
            shapes[n++] = sql_event_tables[i].shape;
        for (size_t i = 0; i < sql_array_table_count; i++)
            shapes[n++] = sql_array_tables[i].shape;
        count = n;
    }
    *ret_count = count;
    return shapes;
}
