// SPDX-License-Identifier: MIT
//
// SQLite's side of the tables. Comparisons of whole-number columns with something known are
// given to the table as bounds; SQLite checks them again itself, so a table may use them as
// far as it pays.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/sql/table.h"

typedef struct Vtab {
    sqlite3_vtab base; // SQLite's, first
    const TableSpec *table;
    SqlDatabase *database;
} Vtab;

typedef struct Client {
    const TableSpec *table;
    SqlDatabase *database;
} Client;

void result_text(sqlite3_context *context, const char *text)
{
    if (text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_null(context);
}

static int connect_table(sqlite3 *handle, void *arg, int argc, const char *const *argv,
                         sqlite3_vtab **ret_vtab, char **ret_error)
{
    const Client *client = arg;
    const SqlTable *shape = &client->table->shape;
    sqlite3_str *text = sqlite3_str_new(handle);

    (void)argc;
    (void)argv;
    (void)ret_error;
    sqlite3_str_appendall(text, "CREATE TABLE x(");
    for (u32 i = 0; i < shape->column_count; i++)
        sqlite3_str_appendf(text, "%s\"%w\" %s", i ? "," : "", shape->columns[i].name,
                            shape->columns[i].type);
    sqlite3_str_appendall(text, ")");
    char *declaration = sqlite3_str_finish(text);
    int status = declaration ? sqlite3_declare_vtab(handle, declaration) : SQLITE_NOMEM;
    sqlite3_free(declaration);
    Vtab *vtab = status == SQLITE_OK ? calloc(1, sizeof(*vtab)) : NULL;
    if (!vtab)
        return status == SQLITE_OK ? SQLITE_NOMEM : status;
    vtab->table = client->table;
    vtab->database = client->database;
    sqlite3_vtab_config(handle, SQLITE_VTAB_INNOCUOUS);
    *ret_vtab = &vtab->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    free(base);
    return SQLITE_OK;
}

// ---------------------------------------------------------------------- constraints

static char operator_code(int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return '=';
    case SQLITE_INDEX_CONSTRAINT_GT: return '>';
    case SQLITE_INDEX_CONSTRAINT_GE: return 'g';
    case SQLITE_INDEX_CONSTRAINT_LT: return '<';
    case SQLITE_INDEX_CONSTRAINT_LE: return 'l';
    default: return 0;
    }
}

// idxStr is two characters for each value that xFilter gets: the column and the operator.
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const TableSpec *table = ((Vtab *)base)->table;
    double rows = (double)table->row_count(((Vtab *)base)->database->recording) + 1;
    double cost = rows; // of reading: in a join, what has to be read whole is read once
    char *plan = sqlite3_malloc(2 * info->nConstraint + 1);
    int count = 0;

    if (!plan)
        return SQLITE_NOMEM;
    for (int i = 0; i < info->nConstraint; i++) {
        int column = info->aConstraint[i].iColumn;
        char code = operator_code(info->aConstraint[i].op);
        if (!info->aConstraint[i].usable || !code || column < 0 || !(table->bounded >> column & 1))
            continue;
        plan[2 * count] = (char)('A' + column);
        plan[2 * count + 1] = code;
        info->aConstraintUsage[i].argvIndex = ++count;
        double share = code == '=' ? 1000 : 4;
        rows /= share;
        cost /= table->seeks >> column & 1 ? share : 1;
    }
    plan[2 * count] = 0;
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    info->estimatedCost = cost < 1 ? 1 : cost;
    return SQLITE_OK;
}

static void narrow(Bounds *bounds, char code, sqlite3_value *value)
{
    int type = sqlite3_value_numeric_type(value);
    i64 number = sqlite3_value_int64(value);

    if (type == SQLITE_FLOAT) {
        double real = sqlite3_value_double(value);
        if (!(real > -9e18 && real < 9e18))
            return;
        // A bound one too wide costs nothing: SQLite looks again.
        number = (i64)real;
        code = code == '>' ? 'g' : code == '<' ? 'l' : code;
        if (code == 'g')
            number -= number > INT64_MIN;
        if (code == 'l')
            number += number < INT64_MAX;
    } else if (type != SQLITE_INTEGER) {
        return;
    }
    if (code == '>' && number < INT64_MAX)
        number++;
    if (code == '<' && number > INT64_MIN)
        number--;
    bool is_low = code == '=' || code == '>' || code == 'g';
    bool is_high = code == '=' || code == '<' || code == 'l';
    if (is_low && number > bounds->min)
        bounds->min = number;
    if (is_high && number < bounds->max)
        bounds->max = number;
}

// -------------------------------------------------------------------------- cursors

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
    TableCursor *cursor = calloc(1, sizeof(*cursor));
    Vtab *vtab = (Vtab *)base;

    if (!cursor)
        return SQLITE_NOMEM;
    cursor->table = vtab->table;
    cursor->database = vtab->database;
    cursor->recording = vtab->database->recording;
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void stop(TableCursor *cursor)
{
    if (cursor->table->stop)
        cursor->table->stop(cursor);
    cursor->data = NULL;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    TableCursor *cursor = (TableCursor *)base;

    stop(cursor);
    stack_free(&cursor->stack);
    free(cursor);
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    TableCursor *cursor = (TableCursor *)base;

    cursor->at_end = !cursor->table->step(cursor);
    cursor->rowid++;
    return cursor->status;
}

static int filter(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                  sqlite3_value **argv)
{
    TableCursor *cursor = (TableCursor *)base;

    (void)plan_number;
    stop(cursor);
    for (u32 i = 0; i < TABLE_COLUMNS_MAX; i++)
        cursor->bounds[i] = (Bounds){INT64_MIN, INT64_MAX};
    for (int i = 0; i < argc && plan && plan[2 * i]; i++) {
        u32 column = (u32)(plan[2 * i] - 'A');
        if (column < TABLE_COLUMNS_MAX)
            narrow(&cursor->bounds[column], plan[2 * i + 1], argv[i]);
    }
    cursor->row = cursor->end = cursor->rowid = 0;
    cursor->in_stack = false;
    cursor->status = cursor->table->start(cursor);
    return cursor->status == SQLITE_OK ? next(base) : cursor->status;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((TableCursor *)base)->at_end;
}

static int column_value(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    TableCursor *cursor = (TableCursor *)base;

    cursor->table->column(cursor, (u32)column, context);
    return SQLITE_OK;
}

static int row_number(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = (sqlite3_int64)((TableCursor *)base)->rowid;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xCreate = connect_table,
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column_value,
    .xRowid = row_number,
};

int vtab_register(SqlDatabase *database, const TableSpec *table)
{
    Client *client = malloc(sizeof(*client));
    char text[128];

    if (!client)
        return SQLITE_NOMEM;
    *client = (Client){table, database};
    int status = sqlite3_create_module_v2(database->handle, table->shape.name, &module, client,
                                          free);
    snprintf(text, sizeof(text), "CREATE VIRTUAL TABLE %s USING %s", table->shape.name,
             table->shape.name);
    return status == SQLITE_OK ? sqlite3_exec(database->handle, text, NULL, NULL, NULL) : status;
}
