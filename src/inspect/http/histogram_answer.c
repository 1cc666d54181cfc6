// SPDX-License-Identifier: MIT
//
// /api/histogram: how large blocks were and how long they lived, in powers of two. The
// recording has that of the whole run; of a range the events are counted.
#include <stdlib.h>
#include <string.h>

#include "inspect/http/viewer.h"

typedef struct Counting {
    Call *call;
    const Chosen *chosen;
    const SiteSums *sums;
    SiteHistogram counts;
    u64 bytes[HISTOGRAM_BUCKETS];
    u64 largest, allocations, frees;
    u64 seen, expected;
} Counting;

static u32 bucket_of(u64 value)
{
    return value ? 64 - (u32)__builtin_clzll(value) : 0;
}

static bool count_event(void *arg, const HeapEvent *event)
{
    Counting *counting = arg;
    const Selection *selection = &counting->chosen->selection;
    const SiteSums *sums = &counting->sums[event->site];

    if (++counting->seen % 65536 == 0 &&
        !call_goes_on(counting->call,
                      (double)counting->seen / (double)(counting->expected + 1)))
        return false;
    if (!sums->allocations && !sums->frees && !sums->live_blocks)
        return true;
    if (event->size < selection->min_size ||
        (selection->max_size && event->size > selection->max_size))
        return true;
    if (event->kind == EVENT_ALLOC) {
        counting->counts.sizes[bucket_of(event->size)]++;
        counting->bytes[bucket_of(event->size)] += event->size;
        counting->largest = max_u64(counting->largest, event->size);
        counting->allocations++;
        return true;
    }
    u64 lifetime = event->time.ns - min_u64(event->born_ns, event->time.ns);
    if (lifetime >= selection->min_lifetime_ns &&
        (!selection->max_lifetime_ns || lifetime <= selection->max_lifetime_ns)) {
        counting->counts.lifetimes[bucket_of(lifetime)]++;
        counting->frees++;
    }
    return true;
}

static bool add_histograms(Counting *counting)
{
    Recording *recording = counting->chosen->view->recording;
    SiteHistogram site;
    bool any = false;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        const SiteSums *sums = &counting->sums[i];
        if ((!sums->allocations && !sums->live_blocks) ||
            !recording_histogram(recording, i, &site))
            continue;
        any = true;
        for (int k = 0; k < HISTOGRAM_BUCKETS; k++) {
            counting->counts.sizes[k] += site.sizes[k];
            counting->counts.lifetimes[k] += site.lifetimes[k];
            counting->allocations += site.sizes[k];
            counting->frees += site.lifetimes[k];
        }
    }
    return any;
}

static void put_buckets(Json *out, const char *name, const u64 *counts, const u64 *bytes,
                        bool with_bytes)
{
    int first = 0, last = HISTOGRAM_BUCKETS - 1;

    while (first < HISTOGRAM_BUCKETS && !counts[first])
        first++;
    while (last >= 0 && !counts[last])
        last--;
    json_key_open(out, name, '[');
    for (int i = first; i <= last; i++) {
        json_open(out, '{');
        json_key_u64(out, "low", i ? 1ull << (i - 1) : 0);
        json_key_u64(out, "high", i ? (1ull << (i - 1)) - 1 + (1ull << (i - 1)) : 0);
        json_key_u64(out, "count", counts[i]);
        if (with_bytes) {
            json_key(out, "bytes");
            if (bytes)
                json_u64(out, bytes[i]);
            else
                json_null(out);
        }
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_counts(const Counting *counting, bool is_exact, bool has_bytes)
{
    Json *out = &counting->call->out;

    json_open(out, '{');
    json_key_bool(out, "exact", is_exact);
    put_buckets(out, "sizes", counting->counts.sizes, has_bytes ? counting->bytes : NULL, true);
    put_buckets(out, "lifetimes", counting->counts.lifetimes, NULL, false);
    json_key(out, "largest");
    if (has_bytes)
        json_u64(out, counting->largest);
    else
        json_null(out);
    json_key_u64(out, "allocations", counting->allocations);
    json_key_u64(out, "frees", counting->frees);
    json_close(out, '}');
}

void answer_histogram(Call *call)
{
    Chosen chosen;

    if (!chosen_parse(call, false, &chosen))
        return;
    Recording *recording = chosen.view->recording;
    Counting counting = {.call = call, .chosen = &chosen,
                         .expected = recording_event_count(recording)};
    u64 from, to;
    chosen_range(&chosen, &from, &to);
    bool is_whole = from == 0 && to > recording_last(recording).ns;
    bool has_events = recording_events_kept_since_ns(recording) <= from;
    counting.sums = chosen_sums(call, &chosen);
    if (!counting.sums)
        return;
    // Of the whole run the recording knows it, without a walk.
    if ((is_whole || !has_events) && !chosen_needs_blocks(&chosen.selection) &&
        add_histograms(&counting)) {
        put_counts(&counting, is_whole, false);
        return;
    }
    counting = (Counting){.call = call, .chosen = &chosen, .sums = counting.sums,
                          .expected = counting.expected};
    recording_each_event(recording, from, to, count_event, &counting);
    put_counts(&counting, has_events, true);
}
