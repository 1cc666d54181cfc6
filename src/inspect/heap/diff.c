// SPDX-License-Identifier: MIT
//
// `muninn heap diff A@TIME B@TIME`: two moments of a run, or two runs. Stacks are the same
// if the functions and files of their frames are, from the first that is no allocator out to
// main: addresses and lines move with every build, and what calls main with every libc.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

enum { BEFORE, AFTER, SIDES };

typedef struct Entry {
    i64 value[SIDES];
    u64 blocks[SIDES];
    u32 context[SIDES]; // one of those of this name; 0: none
} Entry;

typedef struct Diff {
    const Arguments *arguments;
    Question sides[SIDES];
    Metric metric;
    Interner *names;
    Entry *entries; // by name
    size_t capacity;
} Diff;

// ------------------------------------------------------------------------ the files

// "FILE@TIME", where the name may have an @ of its own.
static void split_time(const char *word, char **ret_path, const char **ret_time)
{
    const char *at = strrchr(word, '@');

    if (!at || access(word, F_OK) == 0) {
        *ret_path = strdup(word);
        *ret_time = NULL;
        return;
    }
    *ret_path = strndup(word, (size_t)(at - word));
    *ret_time = at + 1;
}

static bool open_side(Diff *diff, u32 side, const char *path, Arguments *arguments)
{
    Question *question = &diff->sides[side];

    if (!question_open(question, arguments, path))
        return false;
    diff->metric = question_metric(question);
    return true;
}

// ------------------------------------------------------------------------- matching

static u32 name_stack(Diff *diff, Question *question, Stack *stack, u32 context)
{
    char name[STACK_LABEL_MAX];
    char *joined = NULL;
    size_t size;

    stack_read(stack, question->recording, context);
    if (stack->count == 0)
        return intern(diff->names, "(no stack)");
    if (diff->arguments->by != BY_STACK) {
        const StackFrame *own = &stack->frames[stack_first_own(stack, question->recording)];
        return intern(diff->names, stack_matching_name(own, question->recording, name));
    }
    FILE *out = open_memstream(&joined, &size);
    if (!out)
        abort();
    for (u32 i = stack_first_code(stack, question->recording); i < stack->count; i++) {
        fprintf(out, "%s\n", stack_matching_name(&stack->frames[i], question->recording, name));
        if (strcmp(stack_function(&stack->frames[i], question->recording), "main") == 0)
            break;
    }
    fclose(out);
    u32 id = intern(diff->names, joined);
    free(joined);
    return id;
}

static Entry *entry_of(Diff *diff, u32 name)
{
    if (name >= diff->capacity) {
        size_t capacity = (size_t)name * 2 + 256;
        diff->entries = realloc(diff->entries, capacity * sizeof(*diff->entries));
        if (!diff->entries)
            abort();
        memset(diff->entries + diff->capacity, 0,
               (capacity - diff->capacity) * sizeof(*diff->entries));
        diff->capacity = capacity;
    }
    return &diff->entries[name];
}

static bool add_side(Diff *diff, u32 side)
{
    Question *question = &diff->sides[side];
    SiteSums *sums = question_sums(question);
    i64 *values = sums ? question_values(question, diff->metric) : NULL;
    Stack stack = {0};

    for (u32 i = 0; values && i < recording_site_count(question->recording); i++) {
        if (values[i] == 0)
            continue;
        u32 context = recording_site(question->recording, i)->context;
        Entry *entry = entry_of(diff, name_stack(diff, question, &stack, context));
        saturate_grow_i64(&entry->value[side], values[i]);
        saturate_grow_u64(&entry->blocks[side], sums[i].live_blocks);
        entry->context[side] = context;
    }
    stack_free(&stack);
    free(sums);
    bool ok = values != NULL;
    free(values);
    return ok;
}

// ------------------------------------------------------------------------- printing

static const Column columns[] = {
    {"change", "change", COLUMN_RIGHT | COLUMN_STRONG},
    {"before", "before", COLUMN_RIGHT},
    {"after", "after", COLUMN_RIGHT},
    {"change_blocks", "blocks", COLUMN_RIGHT},
    {"kind", "", 0},
    {"where", "where", COLUMN_STRONG | COLUMN_PLACE},
    {"stack", "", COLUMN_DATA_ONLY},
};

static i64 change_of(const Entry *entry)
{
    return saturate_sub_i64(entry->value[AFTER], entry->value[BEFORE]);
}

static int largest_change_first(const void *a, const void *b)
{
    i64 x = change_of(a), y = change_of(b);
    u64 of_x = x < 0 ? 0 - (u64)x : (u64)x, of_y = y < 0 ? 0 - (u64)y : (u64)y;

    return of_x < of_y ? 1 : of_x > of_y ? -1 : 0;
}

static Cell amount(const Diff *diff, i64 value)
{
    bool is_bytes = metric_is_bytes(diff->metric);

    return value < 0 ? cell_i64(is_bytes ? CELL_CHANGE : CELL_NUMBER, value)
                     : cell_u64(is_bytes ? CELL_BYTES : CELL_COUNT, (u64)value);
}

static void print_entry(Diff *diff, const Entry *entry, Printer *out)
{
    u32 side = entry->value[AFTER] ? AFTER : BEFORE;
    u32 depth = diff->arguments->depth;
    const char *kind = entry->value[BEFORE] == 0  ? "new"
                       : entry->value[AFTER] == 0 ? "gone"
                       : change_of(entry) > 0     ? "more"
                                                  : "less";
    Where where;

    where_read(&where, diff->sides[side].recording, entry->context[side]);
    const Cell cells[] = {
        cell_i64(metric_is_bytes(diff->metric) ? CELL_CHANGE : CELL_NUMBER, change_of(entry)),
        amount(diff, entry->value[BEFORE]),
        amount(diff, entry->value[AFTER]),
        cell_i64(CELL_NUMBER, (i64)(entry->blocks[AFTER] - entry->blocks[BEFORE])),
        cell_text(kind),
        cell_text(where.own),
        cell_list((const char *const *)where.labels, where.count),
    };
    printer_row(out, cells);
    if (diff->arguments->by == BY_STACK)
        where_print(&where, out, depth == UINT32_MAX ? 3 : depth);
    where_free(&where);
}

static void print_totals(Diff *diff, Printer *out, u32 count)
{
    static const char *const keys[] = {"before", "after"};
    i64 total[SIDES] = {0};
    char moment[128], sum[VALUE_BYTES_MAX], line[256];

    for (u32 i = 0; i < count; i++) {
        saturate_grow_i64(&total[BEFORE], diff->entries[i].value[BEFORE]);
        saturate_grow_i64(&total[AFTER], diff->entries[i].value[AFTER]);
    }
    printer_fact(out, "metric", NULL, cell_text(metric_name(diff->metric)));
    for (u32 side = 0; side < SIDES; side++) {
        if (metric_is_bytes(diff->metric))
            value_bytes((u64)total[side], sum);
        else
            value_count((u64)total[side], sum);
        snprintf(line, sizeof(line), "%s %s %s", sum, metric_title(diff->metric),
                 moment_text(&diff->sides[side], moment));
        printer_line(out, "%-8s %s", keys[side], line);
        printer_fact(out, side == BEFORE ? "total_before" : "total_after", NULL,
                     cell_i64(CELL_NUMBER, total[side]));
    }
    i64 change = saturate_sub_i64(total[AFTER], total[BEFORE]);
    printer_fact(out, "total_change", NULL, cell_i64(CELL_NUMBER, change));
    printer_line(out, "change   %s", value_change(change, sum));
    printer_line(out, "%s", "");
}

static int print_diff(Diff *diff)
{
    u32 count = interned_count(diff->names);
    Printer *out = printer_new(stdout, diff->arguments->form);
    u64 same = 0, same_bytes = 0, left_rows = 0, left = 0;
    char text[VALUE_BYTES_MAX], what[VALUE_BYTES_MAX + 32];

    printer_fact(out, "command", NULL, cell_text("diff"));
    printer_fact(out, "file", NULL, cell_text(diff->arguments->words[0]));
    printer_fact(out, "other_file", NULL, cell_text(diff->arguments->words[1]));
    print_totals(diff, out, count);
    if (count)
        qsort(diff->entries, count, sizeof(*diff->entries), largest_change_first);
    printer_table(out, "changes", NULL, columns, ARRAY_LEN(columns));
    for (u32 i = 0; i < count; i++) {
        const Entry *entry = &diff->entries[i];
        i64 change = change_of(entry);
        if (change == 0) {
            same++;
            saturate_grow_u64(&same_bytes, (u64)entry->value[AFTER]);
        } else if (i < diff->arguments->limit) {
            print_entry(diff, entry, out);
        } else {
            left_rows++;
            saturate_grow_u64(&left, change < 0 ? 0 - (u64)change : (u64)change);
        }
    }
    snprintf(what, sizeof(what), "%s changed", value_bytes(left, text));
    printer_more(out, left_rows, left, metric_is_bytes(diff->metric) ? what : "");
    printer_fact(out, "unchanged", NULL, cell_u64(CELL_COUNT, same));
    if (same)
        printer_line(out, "%llu the same (%s)", (unsigned long long)same,
                     metric_is_bytes(diff->metric) ? value_bytes(same_bytes, text)
                                                   : value_count(same_bytes, text));
    return printer_end(out) ? 0 : 1;
}

int heap_diff(Question *question)
{
    Diff diff = {.arguments = question->arguments};
    Arguments arguments[SIDES] = {*question->arguments, *question->arguments};
    char *paths[SIDES];
    int status = 1;

    for (u32 side = 0; side < SIDES; side++)
        split_time(question->arguments->words[side], &paths[side], &arguments[side].at);
    if (open_side(&diff, BEFORE, paths[BEFORE], &arguments[BEFORE])) {
        const char *other = *paths[AFTER] ? paths[AFTER] : paths[BEFORE];
        if (open_side(&diff, AFTER, other, &arguments[AFTER])) {
            diff.names = interner_new();
            if (add_side(&diff, BEFORE) && add_side(&diff, AFTER))
                status = print_diff(&diff);
            interner_free(diff.names);
            free(diff.entries);
            question_close(&diff.sides[AFTER]);
        }
        question_close(&diff.sides[BEFORE]);
    }
    free(paths[BEFORE]);
    free(paths[AFTER]);
    return status;
}
