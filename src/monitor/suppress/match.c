// SPDX-License-Identifier: MIT
//
// Decides whether an entry suppresses a finding. An entry matches the beginning of a
// stack, so it ends in an implied "..."; each run of locations between two "..."
// may therefore be taken where it matches first, and nothing is tried twice.
#include <string.h>
#include <strings.h>

#include "monitor/suppress/entry.h"
#include "monitor/suppress/filter.h"
#include "monitor/suppress/glob.h"
#include "monitor/suppress/match.h"
#include "monitor/suppress/names.h"

// ------------------------------------------------------------------ one location

static bool pattern_matches(const Location *location, NameForm text)
{
    if (location->is_literal)
        return location->size == text.size &&
               memcmp(location->pattern, text.text, text.size) == 0;
    return glob_match(location->pattern, location->size, text.text, text.size);
}

static bool function_matches(const Location *location, const NameForms *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (pattern_matches(location, names->forms[i]))
            return true;
    }
    // Whether a name has its version depends on which symbol table was at hand.
    if (!location->unversioned_size || names->has_version)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        if (glob_match(location->pattern, location->unversioned_size, names->forms[i].text,
                       names->forms[i].size))
            return true;
    }
    return false;
}

// Debian's /lib is a link to /usr/lib: either may be in a pattern.
static bool object_matches(const Location *location, const QueryFrame *frame)
{
    return pattern_matches(location, frame->object) ||
           (frame->object_alias.size && pattern_matches(location, frame->object_alias));
}

// The file, its whole path, or, for a pattern that has a directory, the end of
// its path.
static bool source_matches(const Location *location, const QueryFrame *frame)
{
    if (!frame->source.size || (location->line && location->line != frame->line))
        return false;
    if (pattern_matches(location, frame->file) || pattern_matches(location, frame->source))
        return true;
    if (!location->size || !memchr(location->pattern, '/', location->size) ||
        location->pattern[0] == '/' || location->pattern[0] == '*')
        return false;
    for (size_t i = 0; i < frame->source.size; i++) {
        NameForm tail = { frame->source.text + i + 1, frame->source.size - i - 1 };

        if (frame->source.text[i] == '/' && pattern_matches(location, tail))
            return true;
    }
    return false;
}

bool location_matches(const Location *location, const QueryFrame *frame)
{
    switch (location->kind) {
    case LOCATION_FUNCTION:
        return function_matches(location, &frame->names);
    case LOCATION_OBJECT:
        return object_matches(location, frame);
    case LOCATION_SOURCE:
        return source_matches(location, frame);
    case LOCATION_ANY_FRAMES:
        break;
    }
    return true;
}

// --------------------------------------------------------------------- a stack

static bool run_matches(const Location *run, size_t size, const QueryFrame *frames)
{
    for (size_t i = 0; i < size; i++) {
        if (!location_matches(&run[i], &frames[i]))
            return false;
    }
    return true;
}

static bool stack_matches(const Entry *entry, const QueryFrame *frames, size_t count)
{
    size_t at = 0;

    for (u32 i = 0; i < entry->location_count;) {
        const Location *run = &entry->locations[i];
        bool anchored = run->kind != LOCATION_ANY_FRAMES;
        size_t size = 0;

        if (!anchored) {
            run++;
            i++;
        }
        while (i < entry->location_count && entry->locations[i].kind != LOCATION_ANY_FRAMES) {
            size++;
            i++;
        }
        while (size <= count - at && !run_matches(run, size, frames + at)) {
            if (anchored)
                return false;
            at++;
        }
        if (size > count - at)
            return false;
        at += size;
    }
    return true;
}

// -------------------------------------------------------------------- an entry

static bool has_tool(const Entry *entry, const char *tool)
{
    const char *each = entry->tools;

    for (u32 i = 0; i < entry->tool_count; i++) {
        if (strcasecmp(each, tool) == 0)
            return true;
        each += strlen(each) + 1;
    }
    return false;
}

static bool entry_matches(const Entry *entry, const SuppressQuery *query, const char *kind,
                          const QueryFrame *frames)
{
    if (strcmp(entry->kind, kind) != 0 || !has_tool(entry, query->tool))
        return false;
    if (query->leak_kind &&
        !(entry->leak_kinds & leak_kinds_of(query->leak_kind, strlen(query->leak_kind))))
        return false;
    const char *extra = query->extra ? fishy_canonical(query->extra) : "";
    if (entry->extra && !glob_match(entry->extra, strlen(entry->extra), extra, strlen(extra)))
        return false;
    return stack_matches(entry, frames, query->count);
}

// ------------------------------------------------------------------ the question

static void describe_object(const Frame *frame, Arena *arena, QueryFrame *ret_frame)
{
    const char *path = frame->object ? frame->object : NAME_UNKNOWN;

    ret_frame->object = (NameForm){ path, strlen(path) };
    ret_frame->object_alias = (NameForm){ NULL, 0 };
    if (strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/usr/bin/", 9) == 0 ||
        strncmp(path, "/usr/sbin/", 10) == 0) {
        ret_frame->object_alias = (NameForm){ path + 4, ret_frame->object.size - 4 };
    } else if (strncmp(path, "/lib", 4) == 0 || strncmp(path, "/bin/", 5) == 0 ||
               strncmp(path, "/sbin/", 6) == 0) {
        char *alias = arena_alloc(arena, ret_frame->object.size + 4, 1);

        if (!alias)
            return;
        memcpy(alias, "/usr", 4);
        memcpy(alias + 4, path, ret_frame->object.size);
        ret_frame->object_alias = (NameForm){ alias, ret_frame->object.size + 4 };
    }
}

static void describe_source(const Frame *frame, Arena *arena, QueryFrame *ret_frame)
{
    ret_frame->file = ret_frame->source = (NameForm){ frame->file, 0 };
    ret_frame->line = frame->line;
    if (!frame->file || !frame->file[0])
        return;
    ret_frame->file.size = strlen(frame->file);
    ret_frame->source = ret_frame->file;
    if (!frame->directory || !frame->directory[0])
        return;

    size_t directory_size = strlen(frame->directory);
    char *path = arena_alloc(arena, directory_size + 1 + ret_frame->file.size, 1);
    if (!path)
        return;
    memcpy(path, frame->directory, directory_size);
    path[directory_size] = '/';
    memcpy(path + directory_size + 1, frame->file, ret_frame->file.size);
    ret_frame->source = (NameForm){ path, directory_size + 1 + ret_frame->file.size };
}

QueryFrame *describe_frames(const Frame *frames, size_t count, Arena *arena)
{
    QueryFrame *described = arena_alloc(arena, (count + 1) * sizeof(*described),
                                        _Alignof(QueryFrame));

    for (size_t i = 0; described && i < count; i++) {
        names_of_frame(&frames[i], arena, &described[i].names);
        describe_object(&frames[i], arena, &described[i]);
        describe_source(&frames[i], arena, &described[i]);
    }
    return described;
}

static void add_pieces(StackFilter *filter, NameForm text)
{
    for (size_t i = 0; i + FILTER_PIECE_SIZE <= text.size; i++)
        filter_add(filter, filter_piece_bit(text.text + i));
}

// Everything that a pattern may be compared with must go in.
static void fill_filter(const QueryFrame *frames, size_t count, StackFilter *filter)
{
    for (size_t i = 0; i < count; i++) {
        const NameForms *names = &frames[i].names;

        for (size_t n = 0; n < names->count; n++) {
            filter_add(filter, filter_name_bit(names->forms[n].text, names->forms[n].size));
            add_pieces(filter, names->forms[n]);
        }
        if (i == 0 || frames[i].object.text != frames[i - 1].object.text) {
            add_pieces(filter, frames[i].object);
            add_pieces(filter, frames[i].object_alias);
        }
        add_pieces(filter, frames[i].source);
    }
}

static bool is_ruled_out(const Entry *entry, const StackFilter *filter)
{
    for (size_t i = 0; i < entry->need_count; i++) {
        if (!filter_has(filter, entry->needs[i]))
            return true;
    }
    return false;
}

// The first slot with this key or a higher one.
static size_t index_find(const SuppressSet *set, u64 key)
{
    const IndexSlot *slots = (const IndexSlot *)set->index.data;
    size_t low = 0, high = set->index.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slots[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Suppression *suppress_match(SuppressSet *set, const SuppressQuery *query)
{
    const char *kind = kind_canonical(query->kind);
    u64 key = index_key(query->tool, kind);
    StackFilter filter = { 0 };

    if (!index_build(set))
        return NULL;
    const IndexSlot *slots = (const IndexSlot *)set->index.data;
    size_t at = index_find(set, key);
    if (at == set->index.count || slots[at].key != key)
        return NULL;

    arena_reset(&set->scratch);
    QueryFrame *frames = describe_frames(query->frames, query->count, &set->scratch);
    if (!frames)
        return NULL;
    fill_filter(frames, query->count, &filter);
    for (; at < set->index.count && slots[at].key == key; at++) {
        Entry *entry = slots[at].entry;

        if (!is_ruled_out(entry, &filter) && entry_matches(entry, query, kind, frames))
            return &entry->shown;
    }
    return NULL;
}
