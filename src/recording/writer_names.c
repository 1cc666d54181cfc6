// SPDX-License-Identifier: MIT
//
// Definitions: modules, contexts, frames, threads and sites get a number by their order, and
// strings too, because a frame of 60 bytes of names would otherwise be written for every
// context. They wait in a buffer that is written before anything that names them.
//
// A chunk of definitions begins with how many of each there were before it, so that a reader
// that lost a chunk still gives the right number to the rest.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/names.h"
#include "recording/writer.h"

enum { FIRST_SLOTS = 1024, NAMES_ENOUGH = 1 << 20 };

static u32 hash_text(const char *text)
{
    u64 hash = 0xcbf29ce484222325ull;

    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 0x100000001b3ull;
    return (u32)(hash ^ hash >> 32);
}

static bool grow_slots(StringTable *table)
{
    size_t wanted = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;
    u64 *slots = calloc(wanted, sizeof(u64));

    if (!slots)
        return false;
    for (size_t i = 0; i < table->slot_count; i++) {
        if (!table->slots[i])
            continue;
        size_t at = (table->slots[i] >> 32) & (wanted - 1);
        while (slots[at])
            at = (at + 1) & (wanted - 1);
        slots[at] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = wanted;
    return true;
}

static void begin_names(RecordingWriter *writer)
{
    if (writer->names.count)
        return;
    bytes_put_varint(&writer->names, writer->strings.count);
    bytes_put_varint(&writer->names, writer->module_count);
    bytes_put_varint(&writer->names, writer->context_count);
    bytes_put_varint(&writer->names, writer->site_count);
}

// The number of a text, from 1; 0 is NULL.
static u32 text_number(RecordingWriter *writer, const char *text)
{
    StringTable *table = &writer->strings;

    if (!text)
        return 0;
    if (table->count * 2 >= table->slot_count && !grow_slots(table))
        return 0;
    u64 hash = hash_text(text);
    size_t at = hash & (table->slot_count - 1);
    for (; table->slots[at]; at = (at + 1) & (table->slot_count - 1)) {
        u32 number = (u32)table->slots[at];
        if (table->slots[at] >> 32 == hash && strcmp(table->texts[number - 1], text) == 0)
            return number;
    }
    if (!array_reserve(&table->texts, &table->capacity, table->count + 1, sizeof(char *)) ||
        !(table->texts[table->count] = strdup(text)))
        return 0;
    table->count++;
    table->slots[at] = hash << 32 | table->count;
    bytes_put_varint(&writer->names, NAME_TEXT);
    bytes_put_text(&writer->names, text);
    return (u32)table->count;
}

void writer_put_names(RecordingWriter *writer)
{
    if (!writer->names.count)
        return;
    bytes_put_varint(&writer->chunk_info, writer->name_chunks++);
    writer_put_chunk(writer, CHUNK_DEFINITIONS, &writer->names);
    writer->names.count = 0;
}

// A definition is whole: the buffer may go to the file.
static void end_name(RecordingWriter *writer)
{
    if (writer->names.failed)
        writer_fail(writer, ENOMEM);
    else if (writer->names.count >= NAMES_ENOUGH)
        writer_put_names(writer);
}

u32 recording_add_module(RecordingWriter *writer, const RecordedModule *module)
{
    begin_names(writer);
    u32 path = text_number(writer, module->path);
    Bytes *names = &writer->names;
    bytes_put_varint(names, NAME_MODULE);
    bytes_put_varint(names, path);
    bytes_put_varint(names, module->start);
    bytes_put_varint(names, module->size);
    bytes_put_varint(names, module->offset);
    bytes_put_varint(names, module->build_id_size);
    bytes_put(names, module->build_id, module->build_id_size);
    u32 number = writer->module_count++;
    end_name(writer);
    return number;
}

u32 recording_add_context(RecordingWriter *writer, u32 parent, u32 module, u64 pc, bool is_return)
{
    begin_names(writer);
    Bytes *names = &writer->names;
    bytes_put_varint(names, NAME_CONTEXT);
    bytes_put_varint(names, writer->context_count - parent);
    bytes_put_varint(names, (u64)module << 1 | is_return);
    bytes_put_varint(names, pc);
    u32 number = writer->context_count++;
    end_name(writer);
    return number;
}

void recording_set_frames(RecordingWriter *writer, u32 context, const RecordedFrame *frames,
                          u32 count)
{
    Bytes *names = &writer->names;
    Bytes frame = { 0 }; // texts are defined before the frames that name them

    begin_names(writer);
    for (u32 i = 0; i < count; i++) {
        const RecordedFrame *f = &frames[i];
        bytes_put_varint(&frame, text_number(writer, f->function));
        bytes_put_varint(&frame, text_number(writer, f->file));
        bytes_put_varint(&frame, text_number(writer, f->directory));
        bytes_put_varint(&frame, text_number(writer, f->object));
        bytes_put_varint(&frame, f->pc);
        bytes_put_varint(&frame, f->object_offset);
        bytes_put_varint(&frame, (u64)f->line << 1 | f->inlined);
    }
    bytes_put_varint(names, NAME_FRAMES);
    bytes_put_varint(names, context);
    bytes_put_varint(names, count);
    bytes_put(names, frame.data, frame.count);
    names->failed |= frame.failed;
    bytes_free(&frame);
    end_name(writer);
}

void recording_set_thread(RecordingWriter *writer, const RecordedThread *thread)
{
    begin_names(writer);
    u32 name = text_number(writer, thread->name);
    Bytes *names = &writer->names;
    bytes_put_varint(names, NAME_THREAD);
    bytes_put_varint(names, thread->number);
    bytes_put_signed(names, thread->tid);
    bytes_put_varint(names, name);
    bytes_put_varint(names, thread->start_ns);
    bytes_put_varint(names, thread->end_ns);
    end_name(writer);
}

u32 recording_add_site(RecordingWriter *writer, const RecordedSite *site)
{
    if (!array_reserve(&writer->sites, &writer->site_capacity, writer->site_count + 1,
                       sizeof(SiteState)) ||
        !array_reserve(&writer->changed, &writer->changed_capacity, writer->site_count / 64 + 1,
                       sizeof(u64))) {
        writer_fail(writer, ENOMEM);
        return 0;
    }
    begin_names(writer);
    bytes_put_varint(&writer->names, NAME_SITE);
    bytes_put_varint(&writer->names, (u64)site->space | (u64)site->pages << SITE_SPACE_BITS);
    bytes_put_varint(&writer->names, site->context);
    bytes_put_varint(&writer->names, site->thread);
    SiteState *state = &writer->sites[writer->site_count];
    *state = (SiteState){ .thread = site->thread, .space = site->space };
    u32 number = (u32)writer->site_count++;
    end_name(writer);
    return number;
}

void writer_free_names(RecordingWriter *writer)
{
    for (size_t i = 0; i < writer->strings.count; i++)
        free(writer->strings.texts[i]);
    free(writer->strings.texts);
    free(writer->strings.slots);
    bytes_free(&writer->names);
}
