// SPDX-License-Identifier: MIT
//
// Definitions as they come from the file. A chunk of them says how many of each kind there
// were before it; where chunks were lost, what is missing is made of empty ones, so that later
// numbers mean what they meant to the writer.
#include <stdlib.h>
#include <string.h>

#include "recording/names.h"
#include "recording/reader.h"

enum { GAP_MAX = 1 << 20 }; // definitions that may be missing before a chunk

static const char *text_of(const Recording *recording, u64 number)
{
    return number < recording->text_count ? recording->texts[number] : NULL;
}

static bool add_text(Recording *recording, char *text)
{
    if (!array_reserve(&recording->texts, &recording->text_capacity, recording->text_count + 1,
                       sizeof(char *))) {
        free(text);
        return false;
    }
    recording->texts[recording->text_count++] = text;
    return true;
}

static bool add_module(Recording *recording, const RecordedModule *module)
{
    if (!array_reserve(&recording->modules, &recording->module_capacity,
                       recording->module_count + 1, sizeof(*module)))
        return false;
    recording->modules[recording->module_count++] = *module;
    return true;
}

static bool add_context(Recording *recording, const RecordedContext *context)
{
    if (!array_reserve(&recording->contexts, &recording->context_capacity,
                       recording->context_count + 1, sizeof(*context)))
        return false;
    recording->contexts[recording->context_count++] = *context;
    return true;
}

static bool add_site(Recording *recording, const RecordedSite *site)
{
    if (!array_reserve(&recording->sites, &recording->site_capacity, recording->site_count + 1,
                       sizeof(*site)))
        return false;
    recording->sites[recording->site_count++] = *site;
    return true;
}

static bool take_module(Recording *recording, Cursor *cursor)
{
    RecordedModule module = { .path = text_of(recording, cursor_varint(cursor)) };

    module.start = cursor_varint(cursor);
    module.size = cursor_varint(cursor);
    module.offset = cursor_varint(cursor);
    u64 size = cursor_varint(cursor);
    const u8 *id = cursor_take(cursor, size);
    if (id && size) {
        u8 *copy = malloc(size);
        if (!copy || !array_reserve(&recording->build_ids, &recording->build_id_capacity,
                                    recording->build_id_count + 1, sizeof(u8 *))) {
            free(copy);
            return false;
        }
        memcpy(copy, id, size);
        recording->build_ids[recording->build_id_count++] = copy;
        module.build_id = copy;
        module.build_id_size = (u32)size;
    }
    return cursor->failed || add_module(recording, &module);
}

static bool take_context(Recording *recording, Cursor *cursor)
{
    u64 up = cursor_varint(cursor), module = cursor_varint(cursor);
    RecordedContext context = { .pc = cursor_varint(cursor) };

    if (cursor->failed)
        return true;
    if (up == 0 || up > recording->context_count) {
        cursor->failed = true; // a context's parent is older
        return true;
    }
    context.parent = (u32)(recording->context_count - up);
    context.module = (u32)(module >> 1);
    context.is_return = module & 1;
    return add_context(recording, &context);
}

static bool take_frames(Recording *recording, Cursor *cursor)
{
    u64 context = cursor_varint(cursor), count = cursor_varint(cursor);

    if (cursor->failed || context >= recording->context_count ||
        count > (u64)(cursor->end - cursor->at)) {
        cursor->failed = true;
        return true;
    }
    if (!array_reserve(&recording->frames, &recording->frame_capacity,
                       recording->frame_count + count, sizeof(RecordedFrame)) ||
        !array_reserve(&recording->frame_texts, &recording->frame_texts_capacity,
                       recording->frame_count + count, sizeof(FrameTexts)))
        return false;
    for (u64 i = 0; i < count; i++) {
        RecordedFrame *frame = &recording->frames[recording->frame_count + i];
        FrameTexts *texts = &recording->frame_texts[recording->frame_count + i];
        texts->function = (u32)cursor_varint(cursor);
        texts->file = (u32)cursor_varint(cursor);
        frame->directory = text_of(recording, cursor_varint(cursor));
        texts->object = (u32)cursor_varint(cursor);
        frame->function = text_of(recording, texts->function);
        frame->file = text_of(recording, texts->file);
        frame->object = text_of(recording, texts->object);
        frame->pc = cursor_varint(cursor);
        frame->object_offset = cursor_varint(cursor);
        u64 line = cursor_varint(cursor);
        frame->line = (u32)(line >> 1);
        frame->inlined = line & 1;
    }
    if (cursor->failed)
        return true;
    recording->contexts[context].first_frame = (u32)recording->frame_count;
    recording->contexts[context].frame_count = (u32)count;
    recording->frame_count += count;
    return true;
}

static bool take_thread(Recording *recording, Cursor *cursor)
{
    RecordedThread thread = { .number = (u32)cursor_varint(cursor) };

    thread.tid = (i32)cursor_signed(cursor);
    thread.name = text_of(recording, cursor_varint(cursor));
    thread.start_ns = cursor_varint(cursor);
    thread.end_ns = cursor_varint(cursor);
    if (cursor->failed)
        return true;
    u64 at = recording->thread_count;
    map_get(&recording->thread_index, thread.number, &at);
    if (!array_reserve(&recording->threads, &recording->thread_capacity, at + 1,
                       sizeof(thread)) ||
        !map_put(&recording->thread_index, thread.number, at))
        return false;
    recording->threads[at] = thread;
    recording->thread_count = max_u64(recording->thread_count, at + 1);
    return true;
}

static bool take_site(Recording *recording, Cursor *cursor)
{
    u64 what = cursor_varint(cursor), pages = what >> SITE_SPACE_BITS;
    RecordedSite site = {
        .space = (Space)(what & ((1 << SITE_SPACE_BITS) - 1)),
        .pages = pages < PAGES_KINDS ? (PagesKind)pages : PAGES_NOT_KNOWN,
    };

    site.context = (u32)cursor_varint(cursor);
    site.thread = (u32)cursor_varint(cursor);
    if (cursor->failed)
        return true;
    if (site.space >= SPACE_COUNT || site.context >= recording->context_count) {
        site.space = SPACE_HEAP; // the number must stay taken
        site.context = 0;
    }
    return add_site(recording, &site);
}

bool reader_begin_names(Recording *recording)
{
    return add_text(recording, NULL) && add_module(recording, &(RecordedModule){ 0 }) &&
           add_context(recording, &(RecordedContext){ 0 });
}

static bool fill_gaps(Recording *recording, Cursor *cursor)
{
    u64 texts = cursor_varint(cursor) + 1, modules = cursor_varint(cursor);
    u64 contexts = cursor_varint(cursor), sites = cursor_varint(cursor);
    bool ok = true;

    if (cursor->failed || texts > recording->text_count + GAP_MAX ||
        modules > recording->module_count + GAP_MAX ||
        contexts > recording->context_count + GAP_MAX ||
        sites > recording->site_count + GAP_MAX) {
        cursor->failed = true;
        return true;
    }
    while (ok && recording->text_count < texts)
        ok = add_text(recording, NULL);
    while (ok && recording->module_count < modules)
        ok = add_module(recording, &(RecordedModule){ 0 });
    while (ok && recording->context_count < contexts)
        ok = add_context(recording, &(RecordedContext){ 0 });
    while (ok && recording->site_count < sites)
        ok = add_site(recording, &(RecordedSite){ 0 });
    return ok;
}

bool reader_take_names(Recording *recording, Cursor *cursor)
{
    bool ok = fill_gaps(recording, cursor);

    while (ok && !cursor->failed && cursor->at < cursor->end) {
        switch (cursor_varint(cursor)) {
        case NAME_TEXT: ok = add_text(recording, cursor_text(cursor)); break;
        case NAME_MODULE: ok = take_module(recording, cursor); break;
        case NAME_CONTEXT: ok = take_context(recording, cursor); break;
        case NAME_FRAMES: ok = take_frames(recording, cursor); break;
        case NAME_THREAD: ok = take_thread(recording, cursor); break;
        case NAME_SITE: ok = take_site(recording, cursor); break;
        default: cursor->failed = true; break;
        }
    }
    return ok;
}

void reader_free_names(Recording *recording)
{
    for (size_t i = 0; i < recording->text_count; i++)
        free(recording->texts[i]);
    for (size_t i = 0; i < recording->build_id_count; i++)
        free(recording->build_ids[i]);
    free(recording->texts);
    free(recording->build_ids);
    free(recording->modules);
    free(recording->contexts);
    free(recording->frames);
    free(recording->frame_texts);
    free(recording->threads);
    map_free(&recording->thread_index);
    free(recording->sites);
}
