// SPDX-License-Identifier: MIT
//
// massif.out: the text that ms_print and massif-visualizer read. The heap model writes one at
// the end of a run; inspect/ms_print makes one of a recording.
//
// A tree sums bytes by frames, innermost first. The functions that allocate are one root,
// whatever their names; entries below the threshold are summed up in one.
#ifndef MUNINN_RECORDING_MASSIF_OUT_H
#define MUNINN_RECORDING_MASSIF_OUT_H

#include <stdio.h>

#include "recording/recording.h"

// Where the stack of a site is found.
typedef struct MassifStacks {
    void *arg;
    u32 (*context)(void *arg, u32 site); // innermost
    u32 (*parent)(void *arg, u32 context);
    // Innermost first; 0 of them: nothing is known but the pc.
    const RecordedFrame *(*frames)(void *arg, u32 context, u32 *ret_count);
    u64 (*pc)(void *arg, u32 context); // as it is shown
} MassifStacks;

typedef struct MassifSnapshot {
    u64 time;
    u64 heap_bytes, extra_bytes, stack_bytes;
    bool is_detailed, is_peak;
    u32 site_count;   // of those known by then
    u32 live_count;   // entries of:
    const u32 *sites;
    const u64 *bytes; // their sum is heap_bytes
} MassifSnapshot;

typedef struct MassifConfig {
    const char *options;   // the words that muninn was called with
    const char *command;
    const char *time_unit; // "i", "ms", "B"
    bool pages_as_heap;
    bool show_below_main;
    u32 depth;
    u32 threshold_ppm;
    u32 alloc_fn_count;    // --alloc-fn, beside those that are known
    const char *const *alloc_fns;
    MassifStacks stacks;
    u32 site_count;
} MassifConfig;

void massif_out_write(FILE *file, const MassifConfig *config, const MassifSnapshot *snapshots,
                      size_t count);

// The time of a moment in a unit ("i", "ms" or "B").
u64 massif_out_time(const char *unit, const Moment *moment);
// True for malloc, operator new… and for what the user names so.
bool massif_out_is_allocator(const char *function, const char *const *more, u32 more_count);

#endif
