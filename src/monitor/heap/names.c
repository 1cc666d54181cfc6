// SPDX-License-Identifier: MIT
//
// Frames for contexts: each distinct pc is looked up once, when somebody first wants it,
// which for most is the end of the run.
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

void names_resolve(HeapModel *model, u32 place)
{
    for (; place; place = place_at(model, place)->parent)
        code_named(model, place_at(model, place)->code);
}

void names_record_all(HeapModel *model)
{
    for (u32 i = 1; i < model->places.count && model->writer; i++) {
        const Code *code = code_named(model, place_at(model, i)->code);
        if (code->frame_count)
            recording_set_frames(model->writer, i, code->frames, code->frame_count);
    }
}

static bool is_listed(const OptionList *list, const char *function)
{
    for (u32 i = 0; function && i < list->count; i++) {
        if (strcmp(list->items[i], function) == 0)
            return true;
    }
    return false;
}

// The innermost function that does not allocate for others decides.
bool names_is_ignored(HeapModel *model, u32 place)
{
    const OptionList *more = &model->options->alloc_fn;

    for (; place; place = place_at(model, place)->parent) {
        const Code *code = code_named(model, place_at(model, place)->code);
        for (u32 i = 0; i < code->frame_count; i++) {
            const char *function = code->frames[i].function;
            if (!massif_out_is_allocator(function, more->items, more->count))
                return is_listed(&model->options->ignore_fn, function);
        }
    }
    return false;
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
