// SPDX-License-Identifier: MIT
//
// Frames for contexts: each distinct pc is looked up once, when somebody first wants it,
// which for most is the end of the run.
#include <stdio.h>
#include <string.h>

#include "monitor/heap/model.h"

static Place *place_at(const HeapModel *model, u32 number)
{
    return vec_at(&model->places, number);
}

static RecordedFrame recorded_frame(const Frame *frame)
{
    return (RecordedFrame){
        .function = frame->function,
        .file = frame->file,
        .directory = frame->directory,
        .object = frame->object,
        .pc = frame->pc,
        .object_offset = frame->object_offset,
        .line = frame->line,
        .inlined = frame->inlined,
    };
}

static Code *code_named(HeapModel *model, u32 number)
{
    Code *code = vec_at(&model->codes, number);
    Frame frames[FRAMES_OF_PC_MAX];

    if (code->is_named || code->pc == 0)
        return code;
    code->is_named = true;
    size_t count = symbols_frames(code->symbols, code->place, code->pc, code->is_return,
                                  frames, FRAMES_OF_PC_MAX);
    code->frames = arena_alloc(&model->arena, count * sizeof(RecordedFrame), 8);
    if (!code->frames)
        return code;
    code->frame_count = (u32)count;
    for (size_t i = 0; i < count; i++)
        code->frames[i] = recorded_frame(&frames[i]);
    return code;
}

// Codes are asked for in their order, ahead of those that have been named.
static void ask_ahead(HeapModel *model)
{
    NameQueue *queue = &model->names;

    while (queue->next < model->codes.count && queue->count < SYMBOLS_AHEAD_MAX) {
        const Code *code = vec_at(&model->codes, queue->next);
        bool wants = !code->is_named && code->pc != 0 && code->symbols == model->config.symbols;
        SymbolsAhead ahead = wants ? symbols_ask_ahead(code->symbols, code->place,
                                                       code->is_return)
                                   : SYMBOLS_NO_QUESTION;
        if (ahead == SYMBOLS_TOO_MANY)
            break;
        if (ahead == SYMBOLS_ASKED)
            queue->asked[(queue->first + queue->count++) % SYMBOLS_AHEAD_MAX] = queue->next;
        queue->next++;
    }
}

static void take_answer(HeapModel *model)
{
    NameQueue *queue = &model->names;

    code_named(model, queue->asked[queue->first]);
    queue->first = (queue->first + 1) % SYMBOLS_AHEAD_MAX;
    queue->count--;
}

void names_turn(HeapModel *model)
{
    Symbols *symbols = model->config.symbols;

    while (model->names.count && symbols_has_answer(symbols))
        take_answer(model);
    if (model->names.count < SYMBOLS_AHEAD_MAX / 2 && model->names.next < model->codes.count) {
        ask_ahead(model);
        symbols_send_ahead(symbols);
    }
}

void names_resolve_all(HeapModel *model)
{
    do {
        ask_ahead(model);
        for (u32 i = 0; i < SYMBOLS_AHEAD_MAX / 2 && model->names.count; i++)
            take_answer(model);
    } while (model->names.count);
    for (u32 i = 1; i < model->codes.count; i++)
        code_named(model, i); // what is not the reader's to name, or killed it
}

static void record_place(HeapModel *model, u32 number, const Code *code)
{
    Place *place = place_at(model, number);

    if (place->is_recorded || !code->frame_count)
        return;
    recording_set_frames(model->writer, number, code->frames, code->frame_count);
    place->is_recorded = true;
}

void names_record_all(HeapModel *model)
{
    for (u32 i = 1; i < model->places.count && model->writer; i++)
        record_place(model, i, code_named(model, place_at(model, i)->code));
}

void names_record_known(HeapModel *model)
{
    for (u32 i = 1; i < model->places.count && model->writer; i++) {
        const Code *code = vec_at(&model->codes, place_at(model, i)->code);
        if (code->is_named)
            record_place(model, i, code);
    }
    if (model->writer)
        recording_flush(model->writer);
}

static bool is_listed(const OptionList *list, const char *function)
{
    for (u32 i = 0; function && i < list->count; i++) {
        if (strcmp(list->items[i], function) == 0)
            return true;
    }
    return false;
}

// The innermost function that does not allocate for others decides, by its name and by those of
// what is inlined into it. A function without a name is none.
bool names_is_ignored(HeapModel *model, u32 place)
{
    const OptionList *more = &model->options->alloc_fn;

    for (; place; place = place_at(model, place)->parent) {
        const Code *code = code_named(model, place_at(model, place)->code);
        bool decides = false;
        for (u32 i = 0; i < code->frame_count; i++) {
            const char *function = code->frames[i].function;
            if (!function || massif_out_is_allocator(function, more->items, more->count))
                continue;
            if (is_listed(&model->options->ignore_fn, function))
                return true;
            decides = true;
        }
        if (decides)
            return false;
    }
    return false;
}

// ------------------------------------------------------------------ from a copy

bool names_are_known(const HeapModel *model, u32 place)
{
    for (; place; place = place_at(model, place)->parent) {
        const Code *code = vec_at(&model->codes, place_at(model, place)->code);
        if (!code->is_named && code->pc != 0)
            return false;
    }
    return true;
}

static void send_text(const char *text, FILE *out)
{
    u32 size = text ? (u32)strlen(text) + 1 : 0;
    fwrite(&size, sizeof(size), 1, out);
    fwrite(text, 1, size, out);
}

void names_send(HeapModel *model, u32 place, FILE *out)
{
    for (; place; place = place_at(model, place)->parent) {
        u32 number = place_at(model, place)->code;
        if (((Code *)vec_at(&model->codes, number))->is_named)
            continue; // also if it was sent a moment ago
        const Code *code = code_named(model, number);
        fwrite(&number, sizeof(number), 1, out);
        fwrite(&code->frame_count, sizeof(u32), 1, out);
        for (u32 i = 0; i < code->frame_count; i++) {
            const RecordedFrame *frame = &code->frames[i];
            fwrite(frame, sizeof(*frame), 1, out);
            send_text(frame->function, out);
            send_text(frame->file, out);
            send_text(frame->directory, out);
            send_text(frame->object, out);
        }
    }
}

// The copy may have died in the middle of a name.
static bool take(const u8 **at, const u8 *end, void *ret, size_t size)
{
    if ((size_t)(end - *at) < size)
        return false;
    memcpy(ret, *at, size);
    *at += size;
    return true;
}

static bool take_text(HeapModel *model, const u8 **at, const u8 *end, const char **ret_text)
{
    u32 size;
    if (!take(at, end, &size, sizeof(size)) || (size_t)(end - *at) < size)
        return false;
    char *text = size ? arena_alloc(&model->arena, size, 1) : NULL;
    if (text)
        take(at, end, text, size);
    *ret_text = text;
    return true;
}

static bool take_frame(HeapModel *model, const u8 **at, const u8 *end, RecordedFrame *ret_frame)
{
    return take(at, end, ret_frame, sizeof(*ret_frame)) &&
           take_text(model, at, end, &ret_frame->function) &&
           take_text(model, at, end, &ret_frame->file) &&
           take_text(model, at, end, &ret_frame->directory) &&
           take_text(model, at, end, &ret_frame->object);
}

void names_receive(HeapModel *model, const u8 *at, size_t size)
{
    const u8 *end = at + size;
    u32 number, count;

    while (take(&at, end, &number, sizeof(number)) && take(&at, end, &count, sizeof(count)) &&
           number < model->codes.count && count <= FRAMES_OF_PC_MAX) {
        RecordedFrame *frames = arena_alloc(&model->arena, count * sizeof(*frames), 8);
        u32 got = 0;
        while (frames && got < count && take_frame(model, &at, end, &frames[got]))
            got++;
        Code *code = vec_at(&model->codes, number);
        if (!frames || got < count)
            return;
        if (code->is_named)
            continue;
        code->frames = frames;
        code->frame_count = count;
        code->is_named = true;
    }
}

// ------------------------------------------------------- what massif.out asks for

static u32 stack_context(void *model, u32 site)
{
    return ((HeapModel *)model)->sites[site].context;
}

static u32 stack_parent(void *model, u32 context)
{
    return place_at(model, context)->parent;
}

static const RecordedFrame *stack_frames(void *model, u32 context, u32 *ret_count)
{
    const Code *code = code_named(model, place_at(model, context)->code);
    *ret_count = code->frame_count;
    return code->frames;
}

static u64 stack_pc(void *model, u32 context)
{
    const HeapModel *m = model;
    const Code *code = vec_at(&m->codes, place_at(m, context)->code);
    return code->pc - code->is_return;
}

MassifStacks names_stacks(HeapModel *model)
{
    return (MassifStacks){
        .arg = model,
        .context = stack_context,
        .parent = stack_parent,
        .frames = stack_frames,
        .pc = stack_pc,
    };
}
