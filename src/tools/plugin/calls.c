// SPDX-License-Identifier: MIT
//
// What blocks may call: one PluginCall for each pair of a function and its argument, so that blocks
// which are made again and again take no more memory. And buffers, which call when they are full.
#include <stdlib.h>

#include "tools/plugin/plugin_internal.h"

// ------------------------------------------------------------------ the pairs

static struct {
    PluginCall **slots;
    size_t capacity, used;
} calls; // engine lock, or before the client's start

static size_t place_of(MuninnInsnFn *fn, void *data)
{
    u64 hash = ((u64)fn * 31 + (u64)data) * 0x9e3779b97f4a7c15ull;
    size_t at = (size_t)(hash >> 20) & (calls.capacity - 1);
    while (calls.slots[at] && (calls.slots[at]->fn != fn || calls.slots[at]->data != data))
        at = (at + 1) & (calls.capacity - 1);
    return at;
}

static void grow(void)
{
    PluginCall **old = calls.slots;
    size_t old_capacity = calls.capacity;
    calls.capacity = old_capacity ? 2 * old_capacity : 256;
    calls.slots = calloc(calls.capacity, sizeof(*calls.slots));
    if (!calls.slots)
        plugin_refuse("no memory for what its blocks call");
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i])
            calls.slots[place_of(old[i]->fn, old[i]->data)] = old[i];
    }
    free(old);
}

const PluginCall *plugin_call(MuninnInsnFn *fn, void *data)
{
    if (!fn)
        plugin_refuse("a call in a block needs a function");
    if (2 * calls.used >= calls.capacity)
        grow();
    PluginCall **slot = &calls.slots[place_of(fn, data)];
    if (!*slot) {
        *slot = malloc(sizeof(**slot));
        if (!*slot)
            plugin_refuse("no memory for what its blocks call");
        **slot = (PluginCall){.fn = fn, .data = data};
        calls.used++;
    }
    return *slot;
}

// -------------------------------------------------------------------- buffers

static MuninnBuffer buffers[BUFFERS_MAX];
static u32 buffer_count;

const MuninnBuffer *buffer_numbered(u32 number)
{
    return &buffers[number];
}

static u64 *next_of(ToolThread *thread, u32 number)
{
    return &thread->tool.slot[SLOT_BUFFERS + 2 * number];
}

// `end` and the start of the records: the words behind and before them.
static MuninnRecord *start_of(ToolThread *thread, const MuninnBuffer *buffer)
{
    u64 end = next_of(thread, buffer->number)[1];
    return end ? (MuninnRecord *)end - buffer->capacity : NULL;
}

static void flush_one(ToolThread *thread, const MuninnBuffer *buffer)
{
    MuninnRecord *start = start_of(thread, buffer);
    u64 *next = next_of(thread, buffer->number);
    size_t count = start ? (size_t)((MuninnRecord *)*next - start) : 0;
    *next = (u64)start;
    if (count)
        buffer->fn(handle_of(thread), start, count, buffer->data);
}

static void on_full(MuninnThread *thread, void *data, uint64_t value)
{
    (void)value;
    flush_one(thread_of(thread), data);
}

MuninnBuffer *muninn_buffer(size_t records, MuninnBufferFn *fn, void *data)
{
    // A block makes room for all that it may write.
    enum { RECORDS_MIN = INSNS_MAX * MUNINN_ACCESSES_MAX, RECORDS_MAX = 1 << 24 };
    plugin_needs_start("muninn_buffer");
    if (buffer_count == BUFFERS_MAX)
        plugin_refuse("muninn_buffer: there are no more than %d", BUFFERS_MAX);
    if (records > RECORDS_MAX)
        plugin_refuse("muninn_buffer: %zu records are too many; %d is the most", records,
                      RECORDS_MAX);
    MuninnBuffer *buffer = &buffers[buffer_count];
    *buffer = (MuninnBuffer){
        .fn = fn,
        .data = data,
        .capacity = records < RECORDS_MIN ? RECORDS_MIN : records,
        .number = buffer_count++,
    };
    buffer->flush = plugin_call(on_full, buffer);
    counters_init();
    return buffer;
}

bool buffers_thread_start(ToolThread *thread)
{
    for (u32 i = 0; i < buffer_count; i++) {
        MuninnRecord *records = malloc(buffers[i].capacity * sizeof(*records));
        if (!records)
            return false;
        next_of(thread, i)[0] = (u64)records;
        next_of(thread, i)[1] = (u64)(records + buffers[i].capacity);
    }
    return true;
}

void buffers_flush(ToolThread *thread)
{
    for (u32 i = 0; i < buffer_count; i++)
        flush_one(thread, &buffers[i]);
}

void buffers_thread_end(ToolThread *thread)
{
    for (u32 i = 0; i < buffer_count; i++) {
        free(start_of(thread, &buffers[i]));
        next_of(thread, i)[0] = next_of(thread, i)[1] = 0;
    }
}

// What its parent had written down before the fork the parent will tell.
void buffers_fork_child(ToolThread *thread)
{
    for (u32 i = 0; i < buffer_count; i++)
        next_of(thread, i)[0] = (u64)start_of(thread, &buffers[i]);
}
