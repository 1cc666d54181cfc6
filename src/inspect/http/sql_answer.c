// SPDX-License-Identifier: MIT
//
// /api/sql and /api/sql/tables: the console. A query runs in a process of its own, on the
// recording of the slow lane; inspect/sql sees to it that it reads only, and ends. Others may use
// the recording meanwhile.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/http/viewer.h"
#include "inspect/sql/sql.h"

enum {
    ROWS_DEFAULT = 1000,
    ROWS_MAX = 20000,
    QUERY_MS = 10000,
    ANSWER_BYTES = 32 << 20,
};
static const u64 query_memory_bytes = 1 * GiB;

static void put_value(Json *out, const SqlValue *value)
{
    // What a browser's numbers cannot hold is text.
    const i64 exact = 1ll << 53;

    switch (value->type) {
    case SQL_INTEGER:
        if (value->integer <= exact && value->integer >= -exact) {
            json_i64(out, value->integer);
        } else {
            char digits[24];
            snprintf(digits, sizeof(digits), "%lld", (long long)value->integer);
            json_text(out, digits);
        }
        break;
    case SQL_REAL: json_double(out, value->real); break;
    case SQL_TEXT: json_text(out, value->text); break;
    default: json_null(out); break;
    }
}

static bool take_row(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    Call *call = arg;
    Json *out = &call->out;

    if (!values) {
        json_key_open(out, "columns", '[');
        for (u32 i = 0; i < count; i++)
            json_text(out, names[i]);
        json_close(out, ']');
        json_key_open(out, "rows", '[');
        return true;
    }
    json_open(out, '[');
    for (u32 i = 0; i < count; i++)
        put_value(out, &values[i]);
    json_close(out, ']');
    return !out->failed && out->size < ANSWER_BYTES;
}

void answer_sql(Call *call)
{
    const char *text = request_text(call->request, "q");
    SqlLimits limits = {.rows = request_u64(call->request, "limit", ROWS_DEFAULT, ROWS_MAX),
                        .time_ms = QUERY_MS,
                        .memory_bytes = query_memory_bytes};
    SqlOutcome outcome = {0};
    char *error = NULL;

    if (!text || strlen(text) > 16 * KiB) {
        call_fail(call, 400, "bad-parameter", "q: a query of at most 16 KiB");
        return;
    }
    Chosen chosen;
    if (!chosen_parse(call, false, &chosen))
        return;
    chosen_range(&chosen, &limits.from_ns, &limits.to_ns);
    SqlTask *task = sql_begin(call->view->recording, text, &limits, &error);
    if (!task) {
        call_fail(call, 500, "internal", "%s", error ? error : "SQL is not to be had");
        free(error);
        return;
    }
    call_unlock_views(call);
    json_open(&call->out, '{');
    bool good = sql_end(task, take_row, call, &outcome, &error);
    if (!good)
        call_fail(call, 400, "bad-parameter", "%s", error ? error : "the query failed");
    free(error);
    json_close(&call->out, ']');
    json_key_bool(&call->out, "truncated", outcome.is_cut || call->out.size >= ANSWER_BYTES);
    json_key(&call->out, "ms");
    json_double(&call->out, (double)outcome.elapsed_ns / 1e6);
    json_close(&call->out, '}');
}

static const struct {
    const char *title, *query;
} examples[] = {
#include "inspect/http/queries.def"
};

void answer_sql_tables(Call *call)
{
    Json *out = &call->out;
    size_t count = 0;
    const SqlTable *tables = sql_tables(&count);

    json_open(out, '{');
    json_key_open(out, "tables", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_key_text(out, "name", tables[i].name);
        json_key_text(out, "help", tables[i].help);
        json_key_open(out, "columns", '[');
        for (u32 k = 0; k < tables[i].column_count; k++) {
            json_open(out, '{');
            json_key_text(out, "name", tables[i].columns[k].name);
            json_key_text(out, "type", tables[i].columns[k].type);
            json_key_text(out, "help", tables[i].columns[k].help);
            json_close(out, '}');
        }
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
    json_key_open(out, "examples", '[');
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        json_open(out, '{');
        json_key_text(out, "title", examples[i].title);
        json_key_text(out, "query", examples[i].query);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}
