// SPDX-License-Identifier: MIT
//
// `muninn heap query FILE "SQL"`: inspect/sql/ does the work, the printer the rest.
#include <stdlib.h>
#include <string.h>

#include "inspect/heap/command.h"
#include "inspect/sql/sql.h"

typedef struct Output {
    Question *question;
    u32 column_count;
    char **names; // of the columns
} Output;

static Cell cell_of(const SqlValue *value)
{
    switch (value->type) {
    case SQL_NULL: return cell_none();
    case SQL_INTEGER: return cell_i64(CELL_NUMBER, value->integer);
    case SQL_REAL: return cell_real(CELL_REAL, value->real);
    case SQL_TEXT: return cell_text(value->text);
    }
    return cell_none();
}

// Names come first, with values NULL; JSON needs each of them once.
static void begin(Output *output, const char *const *names, u32 count)
{
    Column *columns = calloc(count + 1, sizeof(*columns));
    char **unique = calloc(count + 1, sizeof(*unique));

    if (!columns || !unique)
        abort();
    answer_begin(output->question); // not before it is known that there is an answer
    output->column_count = count;
    for (u32 i = 0; i < count; i++) {
        u32 same = 0;
        for (u32 j = 0; j < i; j++)
            same += strcmp(names[j], names[i]) == 0;
        if (asprintf(&unique[i], same ? "%s:%u" : "%s", names[i], same) < 0)
            abort();
        columns[i] = (Column){.key = unique[i], .heading = unique[i], .flags = COLUMN_BY_VALUE};
    }
    output->names = unique;
    printer_table(output->question->out, "rows", NULL, columns, count);
    free(columns);
}

static bool take_row(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    Output *output = arg;

    if (!values) {
        begin(output, names, count);
        return true;
    }
    Cell cells[SQL_COLUMNS_MAX];
    for (u32 i = 0; i < count; i++)
        cells[i] = cell_of(&values[i]);
    printer_row(output->question->out, cells);
    return true;
}

static int list_tables(Question *question)
{
    static const Column columns[] = {
        {"table", "table", COLUMN_STRONG},
        {"column", "column", 0},
        {"type", "type", 0},
        {"help", "", 0},
    };
    size_t count;
    const SqlTable *tables = sql_tables(&count);

    answer_begin(question);
    printer_table(question->out, "columns", NULL, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        for (u32 c = 0; c < tables[i].column_count; c++) {
            const SqlColumn *column = &tables[i].columns[c];
            const Cell cells[] = {cell_text(tables[i].name), cell_text(column->name),
                                  cell_text(column->type), cell_text(column->help)};
            printer_row(question->out, cells);
        }
    }
    return answer_end(question);
}

static int finish(Question *question, const SqlOutcome *outcome, const char *error)
{
    printer_fact(question->out, "is_cut", NULL, cell_u64(CELL_BOOL, outcome->is_cut));
    printer_fact(question->out, "error", NULL, cell_text(error));
    if (outcome->is_cut)
        heap_error("there are more rows than --limit=%u", question->arguments->limit);
    if (outcome->events_since_ns) {
        char since[VALUE_BYTES_MAX];
        heap_error("this is about single blocks or events, and those before %s were not kept; "
                   "the table sites has the sums of all",
                   value_ns(outcome->events_since_ns, since));
    }
    return answer_end(question);
}

int heap_query(Question *question)
{
    const Arguments *arguments = question->arguments;
    SqlLimits limits = {
        .rows = arguments->has_limit && arguments->limit != LIMIT_NONE ? arguments->limit : 0,
        .time_ms = (u32)min_u64(arguments->time_limit_ns / 1000000, UINT32_MAX),
        .memory_bytes = 4 * GiB,
    };
    Output output = {.question = question};
    SqlOutcome outcome = {0};
    char *error = NULL;

    if (arguments->show_tables)
        return list_tables(question);
    SqlTask *task = sql_begin(question->recording, arguments->words[1], &limits, &error);
    if (!task)
        return heap_error_line(error);
    progress_begin("asking");
    bool ok = sql_end(task, take_row, &output, &outcome, &error);
    progress_end();
    int status = question->out ? finish(question, &outcome, ok ? NULL : error) : 1;
    for (u32 i = 0; i < output.column_count; i++)
        free(output.names[i]);
    free(output.names);
    return ok ? status : heap_error_line(error);
}
