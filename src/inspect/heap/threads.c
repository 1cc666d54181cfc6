// SPDX-License-Identifier: MIT
//
// `muninn heap threads`: what each thread has allocated, and holds at the end of the range.
#include <stdlib.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

static const Column columns[] = {
    {"thread", "thread", COLUMN_RIGHT},
    {"tid", "tid", COLUMN_RIGHT},
    {"name", "name", COLUMN_STRONG},
    {"live_bytes", "live", COLUMN_RIGHT | COLUMN_STRONG},
    {"percent", "%", COLUMN_RIGHT},
    {"live_blocks", "blocks", COLUMN_RIGHT},
    {"allocations", "allocations", COLUMN_RIGHT},
    {"allocated_bytes", "allocated", COLUMN_RIGHT},
    {"temporary", "temporary", COLUMN_RIGHT},
    {"start_ns", "started", COLUMN_RIGHT},
    {"end_ns", "ended", COLUMN_RIGHT},
};

static const RecordedThread *find_thread(Recording *recording, u32 number)
{
    for (u32 i = 0; i < recording_thread_count(recording); i++) {
        if (recording_thread(recording, i)->number == number)
            return recording_thread(recording, i);
    }
    return NULL;
}

static void print_thread(Question *question, const Group *group, u64 whole)
{
    const RecordedThread *thread = find_thread(question->recording, group->thread);
    const SiteSums *sums = &group->sums;
    const Cell cells[] = {
        cell_u64(CELL_COUNT, group->thread),
        thread ? cell_i64(CELL_NUMBER, thread->tid) : cell_none(),
        thread ? cell_text(thread->name) : cell_none(),
        cell_u64(CELL_BYTES, sums->live_bytes),
        cell_share((double)sums->live_bytes, (double)whole),
        cell_u64(CELL_COUNT, sums->live_blocks),
        cell_u64(CELL_COUNT, sums->allocations),
        cell_u64(CELL_BYTES, sums->allocated_bytes),
        cell_u64(CELL_COUNT, sums->temporary),
        thread ? cell_u64(CELL_NS, thread->start_ns) : cell_none(),
        thread && thread->end_ns ? cell_u64(CELL_NS, thread->end_ns) : cell_none(),
    };
    printer_row(question->out, cells);
}

int heap_threads(Question *question)
{
    SiteSums *sums = question_sums(question);
    i64 *values = sums ? question_values(question, METRIC_ALLOCATED) : NULL;
    u64 whole = 0, left_rows = 0, left = 0;

    if (!values) {
        free(sums);
        return 1;
    }
    Groups *groups = groups_build(question->recording, sums, values, BY_THREAD);
    for (u32 i = 0; i < groups->count; i++)
        saturate_grow_u64(&whole, groups->items[i].sums.live_bytes);
    answer_begin(question);
    printer_table(question->out, "threads", NULL, columns, ARRAY_LEN(columns));
    for (u32 i = 0; i < groups->count; i++) {
        if (i < question->arguments->limit) {
            print_thread(question, &groups->items[i], whole);
        } else {
            left_rows++;
            saturate_grow_u64(&left, groups->items[i].sums.live_bytes);
        }
    }
    printer_more(question->out, left_rows, left, NULL);
    groups_free(groups);
    free(sums);
    free(values);
    return answer_end(question);
}
