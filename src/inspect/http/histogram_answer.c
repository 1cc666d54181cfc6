// SPDX-License-Identifier: MIT
//
// /api/histogram: how large blocks were and how long they lived, in powers of two. The
// recording has that of the whole run; of a range the events are counted.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/parts.h"

typedef struct Counting {
    Call *call;
    const Chosen *chosen;
    u8 *sites; // which are chosen
    BlockCounts counts;
    u64 seen, expected;
} Counting;

static bool count_event(void *arg, const HeapEvent *event)
{
    Counting *counting = arg;
    const Selection *selection = &counting->chosen->selection;

    if (++counting->seen % 65536 == 0 &&
        !call_goes_on(counting->call,
                      (double)counting->seen / (double)(counting->expected + 1)))
        return false;
    if (!counting->sites[event->site] || event->size < selection->min_size ||
        (selection->max_size && event->size > selection->max_size))
        return true;
    if (event->kind == EVENT_ALLOC) {
        counts_add_alloc(&counting->counts, event->size);
        return true;
    }
    u64 lifetime = event->time.ns - min_u64(event->born_ns, event->time.ns);
    if (lifetime >= selection->min_lifetime_ns &&
        (!selection->max_lifetime_ns || lifetime <= selection->max_lifetime_ns))
        counts_add_free(&counting->counts, lifetime);
    return true;
}

// What is known of parts of the range is added, the rest of it walked through.
static void count_range(Counting *counting, u64 from, u64 to)
{
    const Selection *selection = &counting->chosen->selection;
    Recording *recording = counting->chosen->view->recording;
    bool has_filter = selection->function || selection->file || selection->object ||
                      selection->thread;
    u64 known_from = from, known_to = from;

    if (!chosen_needs_blocks(selection))
        parts_add_counts(counting->chosen->view->parts, from, to, counting->sites,
                         has_filter ? 0 : selection->spaces, &counting->counts, &known_from,
                         &known_to);
    recording_each_event(recording, from, known_from, count_event, counting);
    recording_each_event(recording, known_to, to, count_event, counting);
}

static bool add_histograms(Counting *counting)
{
    Recording *recording = counting->chosen->view->recording;
    SiteHistogram site;
    bool any = false;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        if (!counting->sites[i] || !recording_histogram(recording, i, &site))
            continue;
        any = true;
        for (int k = 0; k < HISTOGRAM_BUCKETS; k++) {
            saturate_grow_u64(&counting->counts.sizes[k], site.sizes[k]);
            saturate_grow_u64(&counting->counts.lifetimes[k], site.lifetimes[k]);
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
    u64 allocations = 0, frees = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        saturate_grow_u64(&allocations, counting->counts.sizes[i]);
        saturate_grow_u64(&frees, counting->counts.lifetimes[i]);
    }
    json_open(out, '{');
    json_key_bool(out, "exact", is_exact);
    put_buckets(out, "sizes", counting->counts.sizes, has_bytes ? counting->counts.bytes : NULL,
                true);
    put_buckets(out, "lifetimes", counting->counts.lifetimes, NULL, false);
    json_key(out, "largest");
    if (has_bytes)
        json_u64(out, counting->counts.largest);
    else
        json_null(out);
    json_key_u64(out, "allocations", allocations);
    json_key_u64(out, "frees", frees);
    json_close(out, '}');
}

// Those with something in the selection, to be freed.
static u8 *choose_sites(Call *call, const Chosen *chosen)
{
    const SiteSums *sums = chosen_sums(call, chosen);
    u32 count = recording_site_count(chosen->view->recording);
    u8 *sites = sums ? call_alloc(call, count, 1) : NULL;

    for (u32 i = 0; sites && i < count; i++)
        sites[i] = sums[i].allocations || sums[i].frees || sums[i].live_blocks;
    return sites;
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
    counting.sites = choose_sites(call, &chosen);
    if (!counting.sites)
        return;
    // Of the whole run the recording knows it, without a walk.
    if ((is_whole || !has_events) && !chosen_needs_blocks(&chosen.selection) &&
        add_histograms(&counting)) {
        put_counts(&counting, is_whole, false);
    } else {
        count_range(&counting, from, to);
        put_counts(&counting, has_events, true);
    }
    free(counting.sites);
}
