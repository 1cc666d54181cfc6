// SPDX-License-Identifier: MIT
//
// What the levels of stacks are called. Functions, files and objects get numbers, in the
// order in which frames name them, so that sums need arrays only.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/http/viewer.h"
#include "inspect/stack/stack.h"
#include "recording/stacks.h"

// ------------------------------------------------------------------------- stacks

StackWalk stack_walk(const Recording *recording, u32 context)
{
    return (StackWalk){recording, context, 0};
}

u32 stack_walk_next(StackWalk *walk)
{
    while (walk->context != 0) {
        const RecordedContext *context = recording_context(walk->recording, walk->context);
        u32 at = walk->index, own = walk->context;
        if (at < context->frame_count) {
            walk->index++;
            return context->first_frame + at;
        }
        walk->context = context->parent;
        walk->index = 0;
        if (context->frame_count == 0)
            return recording_frame_count(walk->recording) + own;
    }
    return (u32)PLACE_NONE;
}

const RecordedFrame *place_frame(const Recording *recording, u32 place, RecordedFrame *room)
{
    u32 count = recording_frame_count(recording);

    if (place < count)
        return recording_frame(recording, place);
    *room = (RecordedFrame){0};
    if (place - count >= recording_context_count(recording))
        return room;
    const RecordedContext *context = recording_context(recording, place - count);
    const RecordedModule *module =
        context->module && context->module < recording_module_count(recording)
            ? recording_module(recording, context->module)
            : NULL;
    room->pc = context->pc;
    room->object = module ? module->path : NULL;
    room->object_offset = module ? context->pc - module->start + module->offset : 0;
    return room;
}

const char *frame_shown_name(const RecordedFrame *frame, char buffer[32])
{
    if (frame->function && frame->function[0])
        return frame->function;
    snprintf(buffer, 32, "0x%llx", (unsigned long long)frame->pc);
    return buffer;
}

void place_put_label(Recording *recording, u32 place, bool with_line, char *text, size_t size)
{
    u32 frames = recording_frame_count(recording);
    char label[STACK_LABEL_MAX];

    if (place == (u32)PLACE_NONE) {
        snprintf(text, size, "(no stack)");
        return;
    }
    StackFrame at = {place < frames ? 0 : place - frames, place < frames ? place : UINT32_MAX};
    const RecordedFrame *frame = place < frames ? recording_frame(recording, place) : NULL;
    if (with_line || !frame || !frame->function)
        snprintf(text, size, "%s", stack_label(&at, recording, label));
    else
        snprintf(text, size, "%s", frame->function);
}

void json_place(Json *out, const Recording *recording, u32 place)
{
    RecordedFrame room = {0};
    char buffer[32];
    const RecordedFrame *frame =
        place == (u32)PLACE_NONE ? &room : place_frame(recording, place, &room);
    bool is_known = place != (u32)PLACE_NONE;

    json_key_text(out, "function", is_known ? frame_shown_name(frame, buffer) : NULL);
    json_key_text(out, "file", frame->file);
    json_key_u64(out, "line", frame->line);
    json_key_text(out, "object", frame->object);
}

void json_function(Json *out, const Recording *recording, const Named *function)
{
    if (function->function) {
        json_place(out, recording, function->place);
        return;
    }
    json_key_text(out, "function", "???");
    json_key_text(out, "file", NULL);
    json_key_u64(out, "line", 0);
    json_key_text(out, "object", function->object);
}

// -------------------------------------------------------------------------- names

u64 hash_text(u64 hash, const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (u8)*text) * 1099511628211ull;
    return (hash ^ (text ? 0xfe : 0xff)) * 1099511628211ull;
}

typedef struct Table {
    Map map;
    Named *names;
    u32 count, capacity;
} Table;

// The number of a name with this hash, which is added if it is new. Without memory it is the first.
static u32 number(Table *table, u64 hash, const Named *named)
{
    u64 known;

    if (map_get(&table->map, hash, &known))
        return (u32)known;
    if (table->count == table->capacity) {
        u32 capacity = table->capacity ? 2 * table->capacity : 64;
        Named *names = realloc(table->names, capacity * sizeof(*names));
        if (!names)
            return 0;
        table->names = names;
        table->capacity = capacity;
    }
    table->names[table->count] = *named;
    map_put(&table->map, hash, table->count);
    return table->count++;
}

// The frame as src/inspect/stack/ has it.
static StackFrame stack_frame_of(const Recording *recording, u32 place)
{
    u32 frames = recording_frame_count(recording);
    bool is_frame = place < frames;

    return (StackFrame){is_frame ? 0 : place - frames, is_frame ? place : UINT32_MAX};
}

static void name_place(Names *names, Table tables[3], Recording *recording, u32 place)
{
    const u64 seed = HASH_SEED;
    RecordedFrame room;
    const RecordedFrame *frame = place_frame(recording, place, &room);
    StackFrame at = stack_frame_of(recording, place);
    char stable[STACK_LABEL_MAX];
    Named named = {frame->function, frame->file, frame->directory, frame->object, frame->line,
                   place, hash_text(seed, stack_matching_name(&at, recording, stable))};

    names->function_of[place] = number(&tables[0], named.identity, &named);
    u64 file = hash_text(hash_text(seed, frame->directory), frame->file);
    names->file_of[place] = frame->file ? number(&tables[1], file, &named) : (u32)PLACE_NONE;
    names->object_of[place] = number(&tables[2], hash_text(seed, frame->object), &named);
}

// What a place is, asked once for all stacks through it.
typedef enum PlaceKind { PLACE_ALLOCATOR, PLACE_LIBRARY, PLACE_OWN } PlaceKind;

static PlaceKind place_kind(Recording *recording, u32 place)
{
    RecordedFrame room;
    const RecordedFrame *frame = place_frame(recording, place, &room);

    if (frame->function && is_allocator(frame->function))
        return PLACE_ALLOCATOR;
    if (place >= recording_frame_count(recording))
        return PLACE_LIBRARY; // nothing is known of it
    return frame_is_own(frame, recording) ? PLACE_OWN : PLACE_LIBRARY;
}

// The first place of its kind or above from the innermost on; the outermost of a stack
// without one.
static u32 find_place(const Recording *recording, const u8 *kinds, u32 context, PlaceKind kind)
{
    StackWalk walk = stack_walk(recording, context);
    u32 last = (u32)PLACE_NONE, place;

    while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        if (kinds[place] >= kind)
            return place;
        last = place;
    }
    return last;
}

static void free_names(void *object)
{
    Names *names = object;

    free(names->function_of);
    free(names->file_of);
    free(names->object_of);
    free(names->owner_of);
    free(names->inner_of);
    free(names->functions);
    free(names->files);
    free(names->objects);
    free(names);
}

// As `muninn heap` has it: the user's own code, else whoever called the allocator.
static void find_owners(Names *names, const Recording *recording, const u8 *kinds)
{
    names->owner_of[0] = names->inner_of[0] = (u32)PLACE_NONE;
    for (u32 context = 1; context < names->context_count; context++) {
        u32 inner = find_place(recording, kinds, context, PLACE_LIBRARY);
        u32 own = find_place(recording, kinds, context, PLACE_OWN);
        bool has_own = own != (u32)PLACE_NONE && kinds[own] == PLACE_OWN;
        names->inner_of[context] = inner;
        names->owner_of[context] = has_own ? own : inner;
    }
}

static bool fill_names(Names *names, Recording *recording)
{
    Table tables[3] = {0};
    u32 frames = recording_frame_count(recording);
    u8 *kinds = calloc(names->place_count + 1u, 1);

    if (!kinds)
        return false;
    for (u32 place = 0; place < names->place_count; place++) {
        if (place >= frames && (place == frames ||
                                recording_context(recording, place - frames)->frame_count))
            continue; // a context with frames has no place of its own
        name_place(names, tables, recording, place);
        kinds[place] = (u8)place_kind(recording, place);
    }
    find_owners(names, recording, kinds);
    free(kinds);
    names->functions = tables[0].names;
    names->files = tables[1].names;
    names->objects = tables[2].names;
    names->function_count = tables[0].count;
    names->file_count = tables[1].count;
    names->object_count = tables[2].count;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        map_free(&tables[i].map);
    return names->functions || names->context_count <= 1;
}

const Names *view_names(Call *call, View *view)
{
    const Names *known = memo_get(&view->memo, "names");
    Names *names = known ? NULL : call_alloc(call, 1, sizeof(*names));

    if (!names)
        return known;
    names->context_count = recording_context_count(view->recording);
    names->place_count = recording_frame_count(view->recording) + names->context_count;
    names->function_of = call_alloc(call, names->place_count, sizeof(u32));
    names->file_of = call_alloc(call, names->place_count, sizeof(u32));
    names->object_of = call_alloc(call, names->place_count, sizeof(u32));
    names->owner_of = call_alloc(call, names->context_count, sizeof(u32));
    names->inner_of = call_alloc(call, names->context_count, sizeof(u32));
    if (!names->function_of || !names->file_of || !names->object_of || !names->owner_of ||
        !names->inner_of || !fill_names(names, view->recording)) {
        free_names(names);
        return NULL;
    }
    size_t bytes = (3ull * names->place_count + 2ull * names->context_count) * sizeof(u32) +
                   (size_t)names->function_count * sizeof(Named);
    return memo_put(&view->memo, "names", names, bytes, free_names);
}
