// SPDX-License-Identifier: MIT
//
// `muninn heap top` and `temporary`, and the table of groups that other commands print too:
// a row says how much, how many, and where in the user's own code; the notes below it how
// the program got there.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

enum { DEPTH_DEFAULT = 3 };

void answer_begin(Question *question)
{
    const Arguments *arguments = question->arguments;
    const Selection *selection = &question->selection;

    question->out = printer_new(stdout, arguments->form);
    printer_fact(question->out, "command", NULL, cell_text(arguments->command->name));
    printer_fact(question->out, "file", NULL, cell_text(arguments->words[0]));
    if (!(arguments->command->sets & FOR_RANGE))
        return;
    u64 last = recording_last(question->recording).ns;
    printer_fact(question->out, "from_ns", NULL, cell_u64(CELL_NS, selection->from_ns));
    printer_fact(question->out, "to_ns", NULL,
                 cell_u64(CELL_NS, selection->to_ns ? selection->to_ns : last));
    printer_fact(question->out, "at_peak", NULL, cell_u64(CELL_BOOL, selection->at_peak));
}

int answer_end(Question *question)
{
    return printer_end(question->out) ? 0 : 1;
}

// ------------------------------------------------------------------- rows of groups

enum { COLUMN_VALUE = 0, COLUMN_ALLOCATIONS = 3, COLUMN_TEMPORARY = 4, COLUMN_OF_ITS_OWN = 5 };

static const Column group_columns[] = {
    [COLUMN_VALUE] = {"value", "", COLUMN_RIGHT | COLUMN_STRONG},
    {"percent", "%", COLUMN_RIGHT},
    {"live_blocks", "blocks", COLUMN_RIGHT},
    [COLUMN_ALLOCATIONS] = {"allocations", "allocations", COLUMN_RIGHT},
    [COLUMN_TEMPORARY] = {"temporary", "temporary", COLUMN_RIGHT},
    [COLUMN_OF_ITS_OWN] = {"temporary_percent", "of its own", COLUMN_RIGHT | COLUMN_DATA_ONLY},
    {"where", "where", COLUMN_STRONG | COLUMN_PLACE},
    {"live_bytes", "", COLUMN_DATA_ONLY},
    {"live_usable_bytes", "", COLUMN_DATA_ONLY},
    {"allocated_bytes", "", COLUMN_DATA_ONLY},
    {"freed_bytes", "", COLUMN_DATA_ONLY},
    {"frees", "", COLUMN_DATA_ONLY},
    {"reallocations", "", COLUMN_DATA_ONLY},
    {"peak_bytes", "", COLUMN_DATA_ONLY},
    {"first_ns", "", COLUMN_DATA_ONLY},
    {"last_ns", "", COLUMN_DATA_ONLY},
    {"context", "", COLUMN_DATA_ONLY},
    {"stack", "", COLUMN_DATA_ONLY},
};

static Cell value_cell(Metric metric, i64 value)
{
    if (metric == METRIC_GROWTH)
        return cell_i64(CELL_CHANGE, value);
    return cell_u64(metric_is_bytes(metric) ? CELL_BYTES : CELL_COUNT, (u64)value);
}

static const char *thread_text(Recording *recording, u32 number, char *text, size_t size)
{
    for (u32 i = 0; i < recording_thread_count(recording); i++) {
        const RecordedThread *thread = recording_thread(recording, i);
        if (thread->number == number && thread->name) {
            snprintf(text, size, "thread %u (%.200s)", number, thread->name);
            return text;
        }
    }
    snprintf(text, size, "thread %u", number);
    return text;
}

static u64 magnitude(i64 value)
{
    return value < 0 ? 0 - (u64)value : (u64)value;
}

static void print_group(Question *question, const Group *group, Metric metric, u64 whole)
{
    const SiteSums *sums = &group->sums;
    u32 by = question->arguments->by;
    u32 depth = question->arguments->depth;
    bool is_stack = by == BY_STACK;
    char thread[256];
    Where where;

    where_read(&where, question->recording, group->context);
    const char *name = is_stack ? where.own
                       : by == BY_THREAD
                           ? thread_text(question->recording, group->thread, thread, sizeof(thread))
                           : group->name;
    const Cell cells[] = {
        value_cell(metric, group->value),
        cell_share((double)magnitude(group->value), (double)whole),
        cell_u64(CELL_COUNT, sums->live_blocks),
        cell_u64(CELL_COUNT, sums->allocations),
        cell_u64(CELL_COUNT, sums->temporary),
        cell_share((double)sums->temporary, (double)sums->allocations),
        cell_text(name),
        cell_u64(CELL_BYTES, sums->live_bytes),
        cell_u64(CELL_BYTES, sums->live_usable),
        cell_u64(CELL_BYTES, sums->allocated_bytes),
        cell_u64(CELL_BYTES, sums->freed_bytes),
        cell_u64(CELL_COUNT, sums->frees),
        cell_u64(CELL_COUNT, sums->reallocations),
        cell_u64(CELL_BYTES, sums->peak_bytes),
        cell_u64(CELL_NS, sums->first_ns),
        cell_u64(CELL_NS, sums->last_ns),
        is_stack ? cell_u64(CELL_COUNT, group->context) : cell_none(),
        is_stack ? cell_list((const char *const *)where.labels, where.count) : cell_none(),
    };
    printer_row(question->out, cells);
    if (is_stack)
        where_print(&where, question->out, depth == UINT32_MAX ? DEPTH_DEFAULT : depth);
    where_free(&where);
}

static i64 sum_of(const Groups *groups)
{
    i64 sum = 0;

    for (u32 i = 0; i < groups->count; i++)
        saturate_grow_i64(&sum, groups->items[i].value);
    return sum;
}

// What shares are of: a growth has both signs, and its changes are shares of all changes.
static u64 whole_of(const Groups *groups)
{
    u64 whole = 0;

    for (u32 i = 0; i < groups->count; i++)
        saturate_grow_u64(&whole, magnitude(groups->items[i].value));
    return whole;
}

void groups_print(Question *question, const Groups *groups, Metric metric, const char *key,
                  const char *title)
{
    Column columns[ARRAY_LEN(group_columns)];
    u64 whole = whole_of(groups);
    u64 left_rows = 0, left = 0;
    char what[VALUE_BYTES_MAX + 16], count[VALUE_BYTES_MAX];

    memcpy(columns, group_columns, sizeof(columns));
    columns[COLUMN_VALUE].heading = metric_title(metric);
    // People need a number once.
    if (metric == METRIC_ALLOCATIONS)
        columns[COLUMN_ALLOCATIONS].flags |= COLUMN_DATA_ONLY;
    if (metric == METRIC_TEMPORARY) {
        columns[COLUMN_TEMPORARY].flags |= COLUMN_DATA_ONLY;
        columns[COLUMN_OF_ITS_OWN].flags &= ~(u32)COLUMN_DATA_ONLY;
    }
    printer_table(question->out, key, title, columns, ARRAY_LEN(columns));
    for (u32 i = 0; i < groups->count && groups->items[i].value != 0; i++) {
        if (i < question->arguments->limit) {
            print_group(question, &groups->items[i], metric, whole);
        } else {
            left_rows++;
            saturate_grow_u64(&left, magnitude(groups->items[i].value));
        }
    }
    snprintf(what, sizeof(what), "%s %s", value_count(left, count), metric_title(metric));
    printer_more(question->out, left_rows, left, metric_is_bytes(metric) ? NULL : what);
}

// "12.3 MiB live at the peak (1.5 s)", above the table.
void groups_print_moment(Question *question, Metric metric, i64 whole)
{
    char moment[128], sum[VALUE_BYTES_MAX];

    printer_fact(question->out, "metric", NULL, cell_text(metric_name(metric)));
    printer_fact(question->out, "total", NULL, cell_i64(CELL_NUMBER, whole));
    if (metric == METRIC_GROWTH)
        value_change(whole, sum);
    else if (metric_is_bytes(metric))
        value_bytes((u64)whole, sum);
    else
        value_count((u64)whole, sum);
    printer_line(question->out, "%s %s %s", sum, metric_title(metric),
                 moment_text(question, moment));
    printer_line(question->out, "%s", "");
}

// ------------------------------------------------------------------------ commands

static int print_top(Question *question, Metric metric, const char *title)
{
    SiteSums *sums = question_sums(question);
    i64 *values = sums ? question_values(question, metric) : NULL;

    if (!values) {
        free(sums);
        return 1;
    }
    Groups *groups = groups_build(question->recording, sums, values,
                                  (GroupBy)question->arguments->by);
    answer_begin(question);
    groups_print_moment(question, metric, sum_of(groups));
    groups_print(question, groups, metric, "groups", title);
    groups_free(groups);
    free(sums);
    free(values);
    return answer_end(question);
}

int heap_top(Question *question)
{
    return print_top(question, question_metric(question), NULL);
}

int heap_temporary(Question *question)
{
    return print_top(question, METRIC_TEMPORARY, NULL);
}
