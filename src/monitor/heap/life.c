// SPDX-License-Identifier: MIT
//
// From heap_open() to heap_close().
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor/heap/model_event.h"

static PeakKind main_peak(const bool counts[SPACE_COUNT])
{
    if (counts[SPACE_MAPPED])
        return PEAK_MAPPED;
    if (counts[SPACE_STACK])
        return counts[SPACE_HEAP] ? PEAK_BOTH : PEAK_STACK;
    return counts[SPACE_HEAP] ? PEAK_HEAP : PEAK_KINDS;
}

void model_set_up(HeapModel *model, const HeapConfig *config)
{
    const Options *options = config->options;

    model->config = *config;
    model->options = options;
    model->ended_ns = 0;
    if (config->shared)
        model->start_ns = config->shared->header.start_ns; // a twin's parent unmaps it
    model->admin_bytes = options->pages_as_heap ? 0 : options->heap_admin_bytes;
    model->counts[SPACE_HEAP] = options->heap && !options->pages_as_heap;
    model->counts[SPACE_MAPPED] = options->pages_as_heap;
    model->counts[SPACE_STACK] = options->stacks == STACKS_YES && !options->pages_as_heap;
    model->main_peak = main_peak(model->counts);
    model->clock_space = options->pages_as_heap ? SPACE_MAPPED : SPACE_HEAP;
    model->periodic_next_ns = (u64)options->snapshot_every_s * 1000000000;
    if (config->shared)
        heap_decoder_init(&model->decoder, model, config->shared);
}

HeapModel *heap_open(const HeapConfig *config)
{
    HeapModel *model = calloc(1, sizeof(*model));

    // What has been got is given back by the end of the monitor, which ends for this.
    if (!model || !blocks_grow(&model->blocks) || !places_init(model)) {
        free(model);
        return NULL;
    }
    model->recording_fd = -1;
    model_set_up(model, config);
    triggers_init(model);
    files_open(model, NULL, NULL);
    snapshots_init(model);
    sample_open(model);
    return model;
}

HeapDecoder *heap_decoder(HeapModel *model)
{
    return &model->decoder;
}

// -------------------------------------------------------------------- the turns

static void periodic(HeapModel *model)
{
    u64 every_ns = (u64)model->options->snapshot_every_s * 1000000000;
    Moment moment = model_moment(model);

    if (moment.ns < model->periodic_next_ns)
        return;
    snapshots_ask(model, &moment);
    files_keep_state(model, STATE_PERIODIC, NULL, &moment);
    model->periodic_next_ns = moment.ns - moment.ns % every_ns + every_ns;
}

void heap_turn(HeapModel *model)
{
    if (model->config.shared)
        heap_decoder_tick(&model->decoder, model->config.shared);
    sample_turn(model, false);
    copy_turn(model);
    names_turn(model);
    files_check_recording(model);
    if (model->options->snapshot_every_s)
        periodic(model);
    for (u32 i = 0; i < model->trigger_count; i++) {
        if (model->triggers[i].at.of == TRIGGER_RSS) {
            triggers_check(model);
            break;
        }
    }
}

int heap_wait_ms(const HeapModel *model, int wait_ms)
{
    enum { SAMPLES_MS = 100, COPIES_MS = 5 };
    int most = copy_is_at_work(model) ? COPIES_MS : SAMPLES_MS;
    return wait_ms > most ? most : wait_ms;
}

// ---------------------------------------------------------------------- the end

static void say(const HeapModel *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const HeapModel *model, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (model->config.say)
        model->config.say(model->config.say_arg, line);
}

static void say_sums(const HeapModel *model)
{
    const Oddities *odd = &model->oddities;
    u64 bytes = 0;

    for (u32 i = 0; i < model->site_count; i++) {
        if (model->sites[i].space == SPACE_HEAP)
            bytes += model->sites[i].allocated_bytes;
    }
    say(model, "total heap usage: %" PRIu64 " allocs, %" PRIu64 " frees, %" PRIu64
        " bytes allocated; %" PRIu64 " reallocs, %" PRIu64 " temporary",
        model->allocations, model->frees, bytes, model->reallocations, model->temporary);
    say(model, "in use at exit: %" PRIu64 " bytes in %" PRIu64 " blocks; the peak is %" PRIu64
        " bytes with what allocators add", model->totals.bytes[SPACE_HEAP],
        model->totals.blocks[SPACE_HEAP], model->peaks[PEAK_HEAP].bytes);
    say(model, "model: %" PRIu64 " events, %u sites, %zu stacks; frees of blocks not known: %"
        PRIu64 ", late: %" PRIu64 ", blocks lost: %" PRIu64 ", stacks cut: %" PRIu64
        ", sites joined: %" PRIu64, model->events, model->site_count, model->places.count - 1,
        odd->unknown_frees, odd->late_frees, odd->lost_blocks, odd->cut_contexts,
        odd->joined_sites);
    say(model, "monitor: %.3f s of processor time so far", (double)clock() / CLOCKS_PER_SEC);
}

// Bytes and blocks are right nevertheless.
static void say_what_is_joined(const HeapModel *model)
{
    if (model->oddities.cut_contexts)
        say(model, "muninn: more than %u different stacks: %" PRIu64
            " that came later are counted as those of their callers", model->places_max,
            model->oddities.cut_contexts);
    if (model->site_count >= 2 * model->sites_max)
        say(model, "muninn: more than %u different stacks allocated: what those that came later "
            "allocated is counted without a stack", 2 * model->sites_max);
}

// Without a dynamic linker the allocator is found by the program's own symbols, or not at all.
static void say_what_is_hidden(const HeapModel *model)
{
    if (model->allocations || model->frees || model->totals.blocks[SPACE_HEAP])
        return;
    for (size_t i = 0; i < model->modules.count; i++) {
        const Module *module = vec_at(&model->modules, i);
        if (strstr(module->recorded.path, "/ld-"))
            return;
    }
    if (model->modules.count)
        say(model, "muninn: no allocation was seen: a program that is linked statically shows "
            "its allocator by its symbols, if it has not been stripped");
}

void heap_before_exec(HeapModel *model)
{
    names_resolve_all(model);
    files_make_way(model);
}

void heap_exec_failed(HeapModel *model)
{
    files_come_back(model);
}

void heap_ended(HeapModel *model, u64 stamp)
{
    u64 now = model_moment(model).ns;

    model->ended_ns = max_u64(1, min_u64(now, heap_decoder_now(&model->decoder, stamp).ns));
}

void heap_close(HeapModel *model, const HeapEnd *end)
{
    if (!model->ended_ns)
        model->ended_ns = model_moment(model).ns;
    sample_turn(model, true);
    if (model->options->verbosity > 0)
        say_sums(model);
    if (model->options->verbosity >= 0) {
        say_what_is_joined(model);
        say_what_is_hidden(model);
    }
    files_close(model, end);
    sample_close(model);
    copy_forget_all(model, true);
    snapshots_free(model);
}

void heap_free_model(HeapModel *model)
{
    if (!model)
        return;
    places_free(model);
    blocks_free(&model->blocks);
    arena_free(&model->arena);
    free(model->marks);
    free(model->massif_path);
    free(model->recording_path);
    free(model->usual_path);
    free(model->usual_name);
    if (model->recording_fd >= 0)
        close(model->recording_fd);
    free(model);
}
