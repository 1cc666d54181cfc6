// SPDX-License-Identifier: MIT
//
// One answer of the monitor to heap_top, with the rates against the answer before.
#ifndef MUNINN_INSPECT_TOP_SAMPLE_H
#define MUNINN_INSPECT_TOP_SAMPLE_H

#include "inspect/dom/dom.h"

typedef enum TopOrder {
    TOP_BYTES,
    TOP_GROWTH,
    TOP_TEMPORARY,
    TOP_ALLOCATIONS,
    TOP_ORDERS,
} TopOrder;
extern const char *const top_order_names[TOP_ORDERS]; // as the monitor knows them

typedef enum TopSpace { TOP_HEAP, TOP_MAPPED, TOP_STACKS, TOP_SPACES } TopSpace;
extern const char *const top_space_names[TOP_SPACES];

typedef struct TopContext {
    u64 id;
    TopSpace space;
    u64 bytes, blocks, peak_bytes;
    u64 allocations, temporary;
    double growth_per_s, allocations_per_s, temporary_per_s;
    const Dom *frames; // the list of them; NULL: none
} TopContext;

typedef struct TopSample {
    Arena arena; // holds what the contexts point to
    u64 time_ms;
    u64 bytes[TOP_SPACES], peak_bytes[TOP_SPACES];
    u64 rss_bytes, rss_peak_bytes;
    u64 allocations, temporary;
    double growth_per_s, allocations_per_s, temporary_per_s;
    TopContext *contexts;
    u32 context_count;
} TopSample;

typedef enum SampleState {
    SAMPLE_TAKEN,
    SAMPLE_SILENCE, // nobody answers: the program has ended, or never was there
    SAMPLE_REFUSED, // the monitor does not know the command, or failed: *ret_error
    SAMPLE_BROKEN,  // the answer cannot be read
} SampleState;

// `before` may be NULL: then the rates are the monitor's own. *ret_error, for SAMPLE_REFUSED, is to
// be freed.
SampleState sample_take(i32 pid, TopOrder order, const TopSample *before, TopSample *ret_sample,
                        char **ret_error);
// Takes the text over. What sample_take() does with an answer; for tests.
SampleState sample_parse(char *text, const TopSample *before, TopSample *ret_sample);
void sample_free(TopSample *sample);
void sample_sort(TopSample *sample, TopOrder order);

// "insert (table.c:40)", "0x401136 (in app)".
void sample_frame_label(const Dom *frame, char *text, size_t size);

#endif
