// SPDX-License-Identifier: MIT
//
// /api/findings: findings by source line, and against those of another report.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/map.h"
#include "inspect/http/leak_tree.h"
#include "inspect/http/source_text.h"

enum {
    LIMIT_DEFAULT = 200,
    LIMIT_MAX = 2000,
    EXCERPT_AROUND = 3, // lines before and after
    FINDINGS_OF_GROUP = 2000,
};

typedef enum Status { STATUS_NONE, STATUS_NEW, STATUS_KNOWN, STATUS_FIXED } Status;
static const char *const status_names[] = {"", "new", "known", "fixed"};

typedef struct Entry {
    const Found *found;
    bool is_bases;
    Status status;
    u32 group;
} Entry;

typedef struct LineGroup {
    const FoundFrame *place; // NULL: findings without a stack
    bool is_bases;
    u64 count, leaked_bytes;
    u32 rank; // of its gravest finding
    u32 first; // index of its first entry once they are sorted
    u32 entries;
    u32 order; // as they came
} LineGroup;

typedef struct Table {
    Call *call;
    const Findings *own, *base; // base NULL: none
    FindingFilter filter;
    Entry *entries;
    u32 entry_count;
    LineGroup *groups;
    u32 group_count;
    Map group_of;
    u32 by_status[4];
} Table;

// -------------------------------------------------------------------------- gathering

static Map fingerprints(const Findings *findings)
{
    Map map = {0};

    for (u32 i = 0; findings && i < findings->count; i++)
        map_put(&map, findings->found[i].fingerprint, i);
    return map;
}

static u64 place_hash(const FoundFrame *place)
{
    u64 hash = HASH_SEED;

    if (!place)
        return hash;
    if (place->file) {
        hash = hash_text(hash_text(hash, place->directory), place->file);
        return (hash ^ place->line) * 1099511628211ull;
    }
    hash = hash_text(hash_text(hash, place->object), place->function);
    return place->function ? hash : (hash ^ place->pc) * 1099511628211ull;
}

// Errors come before what is only worth a look, and leaks after the others of a level.
enum { RANK_LAST = 5 };

static u32 rank_of(const Found *found)
{
    const char *level = finding_level(found);
    u32 rank = strcmp(level, "error") == 0 ? 0 : strcmp(level, "warning") == 0 ? 2 : 4;

    return rank + finding_is_leak(found);
}

static bool is_of_leaks(u32 rank)
{
    return rank % 2;
}

static void add_entry(Table *table, const Found *found, bool is_bases, Status status)
{
    const FoundFrame *place = finding_place(found);
    u64 key = place_hash(place), group;

    if (!map_get(&table->group_of, key, &group)) {
        group = table->group_count++;
        table->groups[group] =
            (LineGroup){.place = place, .is_bases = is_bases, .order = (u32)group,
                        .rank = RANK_LAST};
        map_put(&table->group_of, key, group);
    }
    saturate_grow_u64(&table->groups[group].count, found->count);
    saturate_grow_u64(&table->groups[group].leaked_bytes, found->own_bytes);
    table->groups[group].rank = (u32)min_u64(table->groups[group].rank, rank_of(found));
    table->groups[group].entries++;
    table->entries[table->entry_count++] = (Entry){found, is_bases, status, (u32)group};
}

static void gather(Table *table)
{
    Map known = fingerprints(table->base), own = fingerprints(table->own);
    const char *wanted = request_text(table->call->request, "status");
    u64 unused;

    for (u32 i = 0; i < table->own->count; i++) {
        const Found *found = &table->own->found[i];
        Status status = !table->base ? STATUS_NONE
                        : map_get(&known, found->fingerprint, &unused) ? STATUS_KNOWN
                                                                       : STATUS_NEW;
        table->by_status[status]++;
        if (finding_is_wanted(&table->filter, found) &&
            (!wanted || strcmp(wanted, status_names[status]) == 0))
            add_entry(table, found, false, status);
    }
    for (u32 i = 0; table->base && i < table->base->count; i++) {
        const Found *found = &table->base->found[i];
        if (map_get(&own, found->fingerprint, &unused))
            continue;
        table->by_status[STATUS_FIXED]++;
        if (finding_is_wanted(&table->filter, found) &&
            (!wanted || strcmp(wanted, "fixed") == 0))
            add_entry(table, found, true, STATUS_FIXED);
    }
    map_free(&known);
    map_free(&own);
}

static int compare_entries(const void *left, const void *right, void *arg)
{
    const Entry *a = left, *b = right;
    const LineGroup *groups = arg;
    const LineGroup *x = &groups[a->group], *y = &groups[b->group];

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (is_of_leaks(x->rank) && x->leaked_bytes != y->leaked_bytes)
        return x->leaked_bytes > y->leaked_bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (rank_of(a->found) != rank_of(b->found))
        return rank_of(a->found) < rank_of(b->found) ? -1 : 1;
    if (a->found->count != b->found->count)
        return a->found->count > b->found->count ? -1 : 1;
    return a->found->id < b->found->id ? -1 : a->found->id > b->found->id;
}

// ---------------------------------------------------------------------------- output

static void put_excerpt(Call *call, const FoundFrame *frame)
{
    Json *out = &call->out;
    SourceText text;
    const char *why;

    json_key(out, "excerpt");
    if (!frame || !frame->file || !frame->line ||
        !source_read(frame->directory, frame->file, &text, &why)) {
        json_null(out);
        return;
    }
    u32 first = frame->line > EXCERPT_AROUND ? frame->line - EXCERPT_AROUND : 1;
    json_open(out, '{');
    json_key_u64(out, "first", first);
    json_key_u64(out, "marked", frame->line);
    json_key(out, "text");
    json_source_lines(out, &text, first, 2 * EXCERPT_AROUND + 1);
    json_close(out, '}');
    source_free(&text);
}

static void put_frame(Json *out, const FoundFrame *frame)
{
    json_key_address(out, "pc", frame->pc);
    json_key_text(out, "function", frame->function);
    json_key_text(out, "file", frame->file);
    json_key_text(out, "directory", frame->directory);
    json_key_u64(out, "line", frame->line);
    json_key_text(out, "object", frame->object);
    json_key_bool(out, "inlined", frame->inlined);
    json_key(out, "source");
    if (frame->source == UINT32_MAX)
        json_null(out);
    else
        json_u64(out, frame->source);
}

static void put_stack(Json *out, const FoundStack *stack)
{
    json_key_open(out, "stack", '[');
    for (u32 i = 0; i < stack->count; i++) {
        json_open(out, '{');
        put_frame(out, &stack->frames[i]);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_parts(Call *call, const Found *found)
{
    Json *out = &call->out;

    json_key_open(out, "parts", '[');
    for (u32 i = 0; i < found->part_count; i++) {
        const FoundPart *part = &found->parts[i];
        Found as_found = {.stack = part->stack};
        json_open(out, '{');
        json_key_text(out, "kind", part->kind);
        json_key_text(out, "text", part->text);
        put_stack(out, &part->stack);
        put_excerpt(call, finding_place(&as_found));
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_holders(Json *out, const Found *found)
{
    char text[HOLDER_TITLE_MAX];

    json_key_open(out, "held_by", '[');
    for (u32 i = 0; i < found->holder_count; i++) {
        const FoundHolder *holder = &found->holders[i];
        holder_put_title(holder, text);
        json_open(out, '{');
        json_key_text(out, "text", text);
        json_key_u64(out, "bytes", holder->bytes);
        json_key_u64(out, "blocks", holder->blocks);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_finding(Call *call, const Entry *entry)
{
    const Found *found = entry->found;
    Json *out = &call->out;
    char fingerprint[24], *suppression = finding_suppression(found);

    snprintf(fingerprint, sizeof(fingerprint), "%016llx", (unsigned long long)found->fingerprint);
    json_open(out, '{');
    json_key_u64(out, "id", found->id);
    json_key_text(out, "kind", found->kind);
    json_key_text(out, "tool", found->tool);
    json_key_text(out, "what", found->what);
    json_key_text(out, "fingerprint", fingerprint);
    json_key_u64(out, "count", found->count);
    json_key_text(out, "status", entry->status ? status_names[entry->status] : NULL);
    json_key_open(out, "thread", '{');
    json_key_u64(out, "id", found->thread);
    json_key_text(out, "name", found->thread_name);
    json_close(out, '}');
    json_key(out, "leak");
    if (found->has_leak) {
        json_open(out, '{');
        json_key_u64(out, "bytes", found->leaked_bytes);
        json_key_u64(out, "blocks", found->leaked_blocks);
        put_holders(out, found);
        json_close(out, '}');
    } else {
        json_null(out);
    }
    put_stack(out, &found->stack);
    put_parts(call, found);
    json_key_text(out, "suppression", suppression);
    json_close(out, '}');
    free(suppression);
}

static void put_group(const Table *table, u32 first)
{
    const LineGroup *group = &table->groups[table->entries[first].group];
    FoundFrame shown = group->place ? *group->place : (FoundFrame){.source = UINT32_MAX};
    const FoundFrame *place = &shown;
    Json *out = &table->call->out;
    char key[1024];

    if (group->is_bases)
        shown.source = UINT32_MAX; // a number of the other file
    if (place->file)
        snprintf(key, sizeof(key), "%s/%s:%u", place->directory ? place->directory : "",
                 place->file, place->line);
    else
        snprintf(key, sizeof(key), "%s", place->function ? place->function
                                         : place->object ? place->object : "(no stack)");
    json_open(out, '{');
    json_key_text(out, "key", key);
    put_frame(out, place);
    json_key_u64(out, "count", group->count);
    json_key_u64(out, "findings_total", group->entries);
    put_excerpt(table->call, place);
    json_key_open(out, "findings", '[');
    for (u32 i = first; i < table->entry_count && i < first + FINDINGS_OF_GROUP &&
                        table->entries[i].group == table->entries[first].group;
         i++)
        put_finding(table->call, &table->entries[i]);
    json_close(out, ']');
    json_close(out, '}');
}

// Counts by a text, of all findings whatever the filter: what can be chosen.
typedef struct Tally {
    const char *text;
    const Found *first; // that has it
    u32 findings;
    u64 count;
} Tally;

static u32 tally(Tally *list, u32 used, u32 room, const char *text, const Found *found)
{
    u32 i = 0;

    while (i < used && strcmp(list[i].text, text) != 0)
        i++;
    if (i == room)
        return used;
    if (i == used)
        list[used++] = (Tally){.text = text, .first = found};
    list[i].findings++;
    saturate_grow_u64(&list[i].count, found->count);
    return used;
}

static void put_kinds(const Table *table)
{
    enum { KINDS_MAX = 100 };
    Tally kinds[KINDS_MAX];
    u32 count = 0;
    Json *out = &table->call->out;

    for (u32 i = 0; i < table->own->count; i++)
        count = tally(kinds, count, KINDS_MAX, table->own->found[i].kind, &table->own->found[i]);
    json_key_open(out, "kinds", '[');
    for (u32 i = 0; i < count; i++) {
        json_open(out, '{');
        json_key_text(out, "id", kinds[i].text);
        json_key_text(out, "title", finding_title(kinds[i].first));
        json_key_text(out, "level", finding_level(kinds[i].first));
        json_key_u64(out, "findings", kinds[i].findings);
        json_key_u64(out, "count", kinds[i].count);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_modules(const Table *table)
{
    enum { MODULES_MAX = 200 };
    Tally modules[MODULES_MAX];
    u32 count = 0;
    Json *out = &table->call->out;

    for (u32 i = 0; i < table->own->count; i++) {
        const FoundFrame *place = finding_place(&table->own->found[i]);
        if (place && place->object)
            count = tally(modules, count, MODULES_MAX, place->object, &table->own->found[i]);
    }
    json_key_open(out, "modules", '[');
    for (u32 i = 0; i < count; i++) {
        json_open(out, '{');
        json_key_text(out, "object", modules[i].text);
        json_key_u64(out, "findings", modules[i].findings);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_baseline(const Table *table)
{
    Json *out = &table->call->out;

    json_key(out, "baseline");
    if (!table->base) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_key_u64(out, "new", table->by_status[STATUS_NEW]);
    json_key_u64(out, "known", table->by_status[STATUS_KNOWN]);
    json_key_u64(out, "fixed", table->by_status[STATUS_FIXED]);
    json_close(out, '}');
}

static void put_table(const Table *table)
{
    Json *out = &table->call->out;
    u64 offset = request_u64(table->call->request, "offset", 0, UINT32_MAX);
    u64 limit = request_u64(table->call->request, "limit", LIMIT_DEFAULT, LIMIT_MAX);
    u64 errors = 0, group = 0;

    for (u32 i = 0; i < table->entry_count; i++)
        saturate_grow_u64(&errors, table->entries[i].found->count);
    json_open(out, '{');
    json_key_u64(out, "groups_total", table->group_count);
    json_key_u64(out, "findings_total", table->entry_count);
    json_key_u64(out, "errors", errors);
    json_key_u64(out, "offset", min_u64(offset, table->group_count));
    put_kinds(table);
    put_modules(table);
    put_baseline(table);
    json_key_open(out, "groups", '[');
    for (u32 i = 0; i < table->entry_count && group < offset + limit; group++) {
        if (group >= offset)
            put_group(table, i);
        i += table->groups[table->entries[i].group].entries;
    }
    json_close(out, ']');
    json_close(out, '}');
}

void answer_findings(Call *call)
{
    Table table = {.call = call, .own = call->file->findings, .filter = finding_filter(call),
                   .base = request_text(call->request, "base_f") ? call->base_file->findings
                                                                  : NULL};
    u64 room = (u64)table.own->count + (table.base ? table.base->count : 0);

    table.entries = call_alloc(call, room, sizeof(Entry));
    table.groups = call_alloc(call, room, sizeof(LineGroup));
    if (table.entries && table.groups) {
        gather(&table);
        qsort_r(table.entries, table.entry_count, sizeof(Entry), compare_entries, table.groups);
        put_table(&table);
    }
    map_free(&table.group_of);
    free(table.entries);
    free(table.groups);
}
