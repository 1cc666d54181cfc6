// SPDX-License-Identifier: MIT
//
// Sites summed up as rows: by stack, or by the user's own frame in it. A site counts once,
// in the group of its own frame, so that the groups add up to the whole.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/heap/command.h"

// -------------------------------------------------------------------------- groups

static const char *const by_names[] = {"stack", "function", "line", "file", "object", "thread"};

const char *group_by_name(GroupBy by)
{
    return by_names[by];
}

// What a group is called; contexts of one name are one group.
static void name_of(Recording *recording, Stack *stack, u32 context, GroupBy by, char *text)
{
    stack_read(stack, recording, context);
    if (stack->count == 0) {
        snprintf(text, STACK_LABEL_MAX, "(no stack)");
        return;
    }
    const StackFrame *own = &stack->frames[stack_first_own(stack, recording)];
    const RecordedFrame *frame = stack_frame(own, recording);
    if (by == BY_LINE || !frame)
        stack_label(own, recording, text);
    else if (by == BY_FUNCTION)
        stack_stable_name(own, recording, text);
    else if (by == BY_FILE)
        snprintf(text, STACK_LABEL_MAX, "%.400s%s%.400s",
                 frame->directory && frame->file ? frame->directory : "",
                 frame->directory && frame->file ? "/" : "", frame->file ? frame->file : "???");
    else
        snprintf(text, STACK_LABEL_MAX, "%.900s", frame->object ? frame->object : "???");
}

// The number of a site's group: contexts and threads have one, names are interned.
static u32 key_of(Recording *recording, Stack *stack, Interner *names, Map *by_context,
                  const RecordedSite *site, GroupBy by)
{
    char name[STACK_LABEL_MAX];
    u64 known;

    if (by == BY_STACK)
        return site->context;
    if (by == BY_THREAD)
        return site->thread;
    if (map_get(by_context, site->context, &known))
        return (u32)known;
    name_of(recording, stack, site->context, by, name);
    known = intern(names, name);
    if (!map_put(by_context, site->context, known))
        abort();
    return (u32)known;
}

static void add_site(Groups *groups, Map *by_key, u32 key, const RecordedSite *site,
                     const SiteSums *sums, i64 value, u32 site_number)
{
    u64 index;

    if (!map_get(by_key, key, &index)) {
        index = groups->count++;
        if (!map_put(by_key, key, index))
            abort();
        groups->items[index] = (Group){.context = site->context, .thread = site->thread,
                                       .best = value};
    }
    Group *group = &groups->items[index];
    groups->group_of[site_number] = (u32)index;
    saturate_grow_i64(&group->value, value);
    site_sums_add(&group->sums, sums);
    if (value > group->best) {
        group->best = value;
        group->context = site->context;
    }
}

// Largest first; a growth may be negative, then the largest change. Ties in a fixed order.
static int by_value(const void *a, const void *b)
{
    const Group *x = a, *y = b;
    u64 of_x = x->value < 0 ? 0 - (u64)x->value : (u64)x->value;
    u64 of_y = y->value < 0 ? 0 - (u64)y->value : (u64)y->value;

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    if (x->sums.allocated_bytes != y->sums.allocated_bytes)
        return x->sums.allocated_bytes < y->sums.allocated_bytes ? 1 : -1;
    return x->context < y->context ? -1 : x->context > y->context;
}

// After sorting, group_of has to follow: the group's old number is kept in `best` meanwhile.
static void sort_groups(Groups *groups, u32 site_count)
{
    u32 *moved = calloc((size_t)groups->count + 1, sizeof(*moved));

    if (!moved)
        abort();
    for (u32 i = 0; i < groups->count; i++)
        groups->items[i].best = i;
    qsort(groups->items, groups->count, sizeof(*groups->items), by_value);
    for (u32 i = 0; i < groups->count; i++)
        moved[groups->items[i].best] = i;
    for (u32 site = 0; site < site_count; site++) {
        if (groups->group_of[site] != UINT32_MAX)
            groups->group_of[site] = moved[groups->group_of[site]];
    }
    free(moved);
}

Groups *groups_build(Recording *recording, const SiteSums *sums, const i64 *values, GroupBy by)
{
    u32 site_count = recording_site_count(recording);
    Groups *groups = calloc(1, sizeof(*groups));
    Interner *names = interner_new();
    Map by_context = {0}, by_key = {0};
    Stack stack = {0};

    if (!groups)
        abort();
    groups->items = calloc((size_t)site_count + 1, sizeof(*groups->items));
    groups->group_of = malloc(((size_t)site_count + 1) * sizeof(u32));
    if (!groups->items || !groups->group_of)
        abort();
    for (u32 i = 0; i < site_count; i++) {
        groups->group_of[i] = UINT32_MAX;
        if (values[i] == 0 && site_sums_are_empty(&sums[i]))
            continue;
        const RecordedSite *site = recording_site(recording, i);
        u32 key = key_of(recording, &stack, names, &by_context, site, by);
        u32 before = groups->count;
        add_site(groups, &by_key, key, site, &sums[i], values[i], i);
        if (groups->count > before && by != BY_STACK && by != BY_THREAD)
            groups->items[before].name = strdup(interned(names, key));
    }
    sort_groups(groups, site_count);
    map_free(&by_context);
    map_free(&by_key);
    stack_free(&stack);
    interner_free(names);
    return groups;
}

void groups_free(Groups *groups)
{
    for (u32 i = 0; i < groups->count; i++)
        free(groups->items[i].name);
    free(groups->items);
    free(groups->group_of);
    free(groups);
}

// --------------------------------------------------------------------- where it is

void where_read(Where *where, Recording *recording, u32 context)
{
    Stack stack = {0};

    stack_read(&stack, recording, context);
    *where = (Where){.count = stack.count, .own = "(no stack)"};
    where->labels = calloc((size_t)stack.count + 1, sizeof(*where->labels));
    if (!where->labels)
        abort();
    for (u32 i = 0; i < stack.count; i++) {
        char text[STACK_LABEL_MAX];
        where->labels[i] = strdup(stack_label(&stack.frames[i], recording, text));
    }
    if (stack.count) {
        where->own_index = stack_first_own(&stack, recording);
        stack_label(&stack.frames[where->own_index], recording, where->own);
    }
    stack_free(&stack);
}

void where_free(Where *where)
{
    for (u32 i = 0; i < where->count; i++)
        free(where->labels[i]);
    free(where->labels);
}

void where_print(const Where *where, Printer *out, u32 depth)
{
    char line[STACK_LABEL_MAX + 64];

    if (printer_form(out) != PRINT_TEXT || depth == 0)
        return;
    if (where->own_index > 0) {
        snprintf(line, sizeof(line), "by way of %s", where->labels[where->own_index - 1]);
        printer_note(out, line);
    }
    for (u32 i = where->own_index + 1, shown = 0; i < where->count; i++, shown++) {
        if (shown == depth) {
            snprintf(line, sizeof(line), "… %u more frame%s", where->count - i,
                     where->count - i == 1 ? "" : "s");
            printer_note(out, line);
            return;
        }
        snprintf(line, sizeof(line), "from %s", where->labels[i]);
        printer_note(out, line);
    }
}
