// SPDX-License-Identifier: MIT
//
// The monitor of a fork's child is a copy of the parent's, made when the child first has something
// to tell: that may be long after the fork. So the copy's model is taken back to what was
// live at the fork. What the parent has allocated since is younger than that; what it has freed
// since its recording tells.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "monitor/heap/model_event.h"

// ------------------------------------------------------------------ back to the fork

static void forget_younger(HeapModel *model, u64 ns)
{
    Vec younger;

    vec_init(&younger, sizeof(u64));
    for (u32 i = 1; i < model->blocks.used; i++) {
        const LiveBlock *block = &model->blocks.pool[i];
        u64 address = block_address(block);
        if (address != 0 && block->born_ns > ns)
            vec_push(&younger, &address);
    }
    for (size_t i = 0; i < younger.count; i++) {
        LiveBlock *block = blocks_find(&model->blocks, *(u64 *)vec_at(&younger, i));
        if (block->site != SITE_IGNORED)
            site_shrink(model, block->site, block->size, block_usable(block), 1);
        blocks_remove(&model->blocks, block);
    }
    vec_free(&younger);
    ranges_forget_younger(model, ns);
}

typedef struct Past {
    HeapModel *model;
    u64 ns; // of the fork
} Past;

static void bring_back_block(HeapModel *model, const HeapEvent *end)
{
    if (end->address == 0 || end->address >> HEAP_PLACE_BITS || end->size >> HEAP_PLACE_BITS ||
        blocks_find(&model->blocks, end->address))
        return;
    LiveBlock *block = blocks_add(&model->blocks, heap_place(end->address, end->size,
                                                             max_u64(end->size, end->usable)));
    if (!block) {
        model->oddities.lost_blocks++;
        return;
    }
    block->size = end->size;
    block->born_ns = end->born_ns;
    block->site = end->site;
    site_grow(model, end->site, block->size, block_usable(block), 1);
}

// What was live at the fork has ended once since, if it has. What is left of a range that was cut
// is younger.
static bool take_past(void *opaque, const HeapEvent *event)
{
    Past *past = opaque;
    HeapModel *model = past->model;

    if (event->kind != EVENT_FREE || event->born_ns > past->ns || event->site >= model->site_count)
        return true;
    if (model->sites[event->site].space == SPACE_HEAP)
        bring_back_block(model, event);
    else if (model->sites[event->site].space == SPACE_MAPPED)
        ranges_bring_back(model, event->site, event->address, event->size, event->born_ns);
    return true;
}

static void take_from(Recording *recording, HeapModel *model, u64 ns)
{
    Past past = {.model = model, .ns = ns};

    if (recording_events_kept_since_ns(recording) > ns)
        model->misses_past = true;
    recording_each_event(recording, ns + 1, UINT64_MAX, take_past, &past);
}

void heap_prepare_copy(HeapModel *model, u64 fork_stamp)
{
    if (model->writer && model->recorded_ns > heap_decoder_past_ns(&model->decoder, fork_stamp))
        recording_flush(model->writer);
}

void heap_go_back(HeapModel *model, u64 fork_stamp)
{
    u64 ns = heap_decoder_past_ns(&model->decoder, fork_stamp);
    int fd = model->writer ? recording_writer_fd(model->writer) : model->recording_fd;
    bool has_changed = model->recorded_ns > ns;
    char path[64];
    char *error = NULL;

    model->writer = NULL; // the parent's: its memory is not worth the risk of a call
    forget_younger(model, ns);
    if (fd < 0 || !has_changed)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    Recording *recording = recording_open(path, NULL, NULL, &error);
    if (recording)
        take_from(recording, model, ns);
    recording_free(recording);
    free(error);
}

// ------------------------------------------------------------------ in the child's name

// The child began with these. They are told as allocated at its start.
static void record_inherited(HeapModel *model)
{
    for (u32 i = 1; i < model->blocks.used; i++) {
        LiveBlock *block = &model->blocks.pool[i];
        if (block->place == 0)
            continue;
        block->born_ns = 0;
        if (block->site != SITE_IGNORED)
            block->number = model_record(model, &(HeapEvent){
                .kind = EVENT_ALLOC,
                .site = block->site,
                .thread = model->sites[block->site].thread,
                .address = block_address(block),
                .size = block->size,
                .usable = block_usable(block),
            });
    }
    for (size_t i = 0; i < model->ranges.count; i++) {
        Range *range = vec_at(&model->ranges, i);
        range->born_ns = 0;
        model_record(model, &(HeapEvent){
            .kind = EVENT_ALLOC,
            .site = range->site,
            .thread = model->sites[range->site].thread,
            .address = range->start,
            .size = range->end - range->start,
            .usable = range->end - range->start,
        });
    }
}

// The child's process tells its stacks anew, under ids of which the parent may have given those
// that were free at the fork to others since.
static void doubt_contexts(HeapModel *model)
{
    for (size_t i = 1; i < model->contexts.count; i++)
        ((Context *)vec_at(&model->contexts, i))->is_inherited = true;
}

// Clocks and counts begin anew; what is live stays, and is the first peak.
static void forget_past(HeapModel *model)
{
    model->now = (Moment){0};
    model->allocated_bytes = model->requested_bytes = model->recorded_ns = 0;
    model->allocations = model->frees = model->temporary = model->reallocations = 0;
    model->events = 0;
    model->oddities = (Oddities){0};
    map_free(&model->late);
    model->mark_count = 0;
    for (u32 i = 0; i < model->site_count; i++) {
        Site *site = &model->sites[i];
        free(site->sizes.counts);
        free(site->lifetimes.counts);
        *site = (Site){
            .live = site->live,
            .allocations = site->live.blocks,
            .allocated_bytes = site->live.bytes,
            .context = site->context,
            .thread = site->thread,
            .pages = site->pages,
            .space = site->space,
        };
    }
    for (int kind = 0; kind < PEAK_KINDS; kind++)
        model->peaks[kind] = (Peak){
            .bytes = model->total[kind],
            .useful_bytes = useful_bytes(model, (PeakKind)kind),
            .epoch = 1,
            .site_count = model->site_count,
        };
    model->epoch = 1;
}

// Threads are not inherited; the one that goes on is told anew.
static void forget_threads(HeapModel *model)
{
    for (size_t i = 0; i < model->threads.count; i++) {
        ModelThread *thread = vec_at(&model->threads, i);
        u64 bytes = thread->stack_bytes;
        if (bytes)
            site_shrink(model, thread->stack_site, bytes, bytes, 1);
        *thread = (ModelThread){.stack_site = SITE_NONE};
    }
}

static void say_what_is_missing(const HeapModel *model)
{
    if (model->misses_past && model->config.say)
        model->config.say(model->config.say_arg,
                          "muninn: what the parent freed right after the fork is not in its "
                          "recording any more: it is missing in this child's, too");
}

void heap_divide(HeapModel *model, const HeapConfig *config)
{
    char *parents_massif = model->massif_path, *parents_recording = model->recording_path;

    free(model->usual_path);
    free(model->usual_name);
    model->massif_path = model->recording_path = model->usual_path = model->usual_name = NULL;
    model->has_told_recording = false;
    model->sampler.directory = model->recording_fd = -1;
    copy_forget_all(model, false); // their descriptors are closed
    snapshots_free(model);
    symbols_after_fork(model->config.symbols);
    doubt_contexts(model);
    forget_threads(model);
    model->names = (NameQueue){0};
    model_set_up(model, config);
    forget_past(model);
    say_what_is_missing(model);
    files_open(model, parents_massif, parents_recording);
    free(parents_massif);
    free(parents_recording);
    if (model->writer) {
        places_record_all(model);
        record_inherited(model);
    }
    snapshots_init(model);
    sample_open(model);
}

