// SPDX-License-Identifier: MIT
//
// Which moments massif.out shows. At first every event is one; when there are too many, a
// quarter of them goes, those first that lie nearest to their neighbours, and from then
// on none is taken sooner than the smallest gap that is left. So they are spread over the whole
// run, however long it is, and a run of n events takes about log(n) times --max-snapshots.
//
// With --max-snapshots=10, the least, no gap of a steady run is longer than 0.3 of it; when half
// of them went, it was 0.5. What goes by the average of the gaps would be more even, but
// of what follows a long pause it would see nothing.
//
// The peak is none of these: M2 knows it exactly when it is asked for.
#include <stdlib.h>
#include <string.h>

#include "monitor/heap/model.h"

enum { ASKED_MAX = 10000 }; // that stay; more are culled like the others
#define KEPT_BYTES_MAX (256 * MiB) // of trees; beyond it there are fewer snapshots

void kept_free(Kept *kept)
{
    free(kept->sites);
    *kept = (Kept){0};
}

void snapshots_init(HeapModel *model)
{
    model->snapshots = (SnapshotList){0};
    snapshots_take(model); // the beginning, with nothing
}

void snapshots_free(HeapModel *model)
{
    for (u32 i = 0; i < model->snapshots.count; i++)
        kept_free(&model->snapshots.kept[i]);
    free(model->snapshots.kept);
    free(model->snapshots.scratch);
    model->snapshots = (SnapshotList){0};
}

// The space whose tree massif.out has.
static Space tree_space(const HeapModel *model)
{
    return model->counts[SPACE_MAPPED] ? SPACE_MAPPED : SPACE_HEAP;
}

static void add_figures(HeapModel *model, Kept *kept, const Site *site, const Live *live)
{
    if (site->space == tree_space(model) && model->counts[site->space]) {
        kept->heap_bytes += live->bytes;
        if (site->space == SPACE_HEAP)
            kept->extra_bytes += live->usable - live->bytes + live->blocks * model->admin_bytes;
    } else if (site->space == SPACE_STACK && model->counts[SPACE_STACK]) {
        kept->stack_bytes += live->bytes;
    }
}

// Room for the most that a snapshot may have. What it really has is copied out of it.
static bool make_scratch(HeapModel *model)
{
    SnapshotList *list = &model->snapshots;
    u32 capacity = model->site_capacity + 1;

    if (capacity > list->scratch_capacity) {
        free(list->scratch);
        list->scratch = malloc(capacity * sizeof(*list->scratch));
        list->scratch_capacity = list->scratch ? capacity : 0;
    }
    return list->scratch != NULL;
}

static void keep_tree(Kept *kept, const SiteBytes *live, u32 count)
{
    kept->sites = malloc((count + 1) * (sizeof(u64) + sizeof(u32)) + sizeof(u64));
    if (!kept->sites)
        return;
    kept->is_detailed = true;
    kept->live_count = count;
    // The bytes stand behind the sites, where they are aligned.
    kept->bytes = (u64 *)(void *)(kept->sites + ((count + 1) & ~1u));
    for (u32 i = 0; i < count; i++) {
        kept->sites[i] = live[i].site;
        kept->bytes[i] = live[i].bytes;
    }
}

enum { SITES_AHEAD = 16 }; // fetched meanwhile: they are far apart
// The tree of now. There are hundreds of these in a run, of thousands of sites.
static void keep_tree_of_now(HeapModel *model, Kept *kept)
{
    Space space = tree_space(model);
    u32 count = 0;

    if (!model->counts[space] || !make_scratch(model))
        return;
    SiteBytes *live = model->snapshots.scratch;
    for (u32 i = 0; i < model->site_count; i++) {
        const Site *site = &model->sites[i];
        prefetch_line(site + SITES_AHEAD);
        if (site->live.bytes == 0)
            continue; // its space is in another line of the cache
        live[count] = (SiteBytes){site->live.bytes, i};
        count += site->space == space;
    }
    keep_tree(kept, live, count);
}

// What is known without looking at the sites.
static Kept keep_totals(const HeapModel *model)
{
    const SpaceTotals *totals = &model->totals;
    Space space = tree_space(model);
    Kept kept = {.moment = model->now, .site_count = model->site_count};

    if (model->counts[space])
        kept.heap_bytes = totals->bytes[space];
    if (model->counts[SPACE_HEAP])
        kept.extra_bytes = totals->usable[SPACE_HEAP] - totals->bytes[SPACE_HEAP] +
                           totals->blocks[SPACE_HEAP] * model->admin_bytes;
    if (model->counts[SPACE_STACK])
        kept.stack_bytes = totals->bytes[SPACE_STACK];
    return kept;
}

Kept snapshots_now(HeapModel *model, bool detailed)
{
    Kept kept = keep_totals(model);
    if (detailed)
        keep_tree_of_now(model, &kept);
    return kept;
}

Kept snapshots_peak(HeapModel *model)
{
    Space space = tree_space(model);
    u32 count = 0;

    if (model->main_peak == PEAK_KINDS)
        return (Kept){0};
    const Peak *peak = &model->peaks[model->main_peak];
    Kept kept = {.moment = peak->moment, .site_count = peak->site_count};
    if (!make_scratch(model))
        return kept;
    for (u32 i = 0; i < model->site_count; i++) {
        const Site *site = &model->sites[i];
        Live live = site_at_peak(model, site, model->main_peak);
        add_figures(model, &kept, site, &live);
        if (site->space == space && live.bytes != 0)
            model->snapshots.scratch[count++] = (SiteBytes){live.bytes, i};
    }
    if (model->counts[space])
        keep_tree(&kept, model->snapshots.scratch, count);
    return kept;
}

// --------------------------------------------------------------------- culling

static u64 clock_of(const HeapModel *model, const Kept *kept)
{
    return model_clock(model, &kept->moment);
}

// The one whose neighbours are nearest to each other; 0: none may go.
static u32 least_needed(const HeapModel *model)
{
    const SnapshotList *list = &model->snapshots;
    u64 least = UINT64_MAX;
    u32 found = 0;

    for (u32 i = 1; i + 1 < list->count; i++) {
        u64 span = clock_of(model, &list->kept[i + 1]) - clock_of(model, &list->kept[i - 1]);
        if (span < least && !list->kept[i].is_asked) {
            least = span;
            found = i;
        }
    }
    return found;
}

static void cull(HeapModel *model)
{
    SnapshotList *list = &model->snapshots;
    u32 wanted = list->count - (list->count + 3) / 4;
    u64 gap = UINT64_MAX;

    while (list->count > wanted) {
        u32 at = least_needed(model);
        if (at == 0)
            break;
        kept_free(&list->kept[at]);
        memmove(&list->kept[at], &list->kept[at + 1], (list->count - at - 1) * sizeof(Kept));
        list->count--;
    }
    for (u32 i = 1; i < list->count; i++) {
        u64 between = clock_of(model, &list->kept[i]) - clock_of(model, &list->kept[i - 1]);
        if (between < gap)
            gap = between;
    }
    if (gap != UINT64_MAX && gap > list->interval)
        list->interval = gap;
}

static void append(HeapModel *model, const Kept *kept)
{
    SnapshotList *list = &model->snapshots;

    if (list->count == list->capacity) {
        u32 capacity = list->capacity ? list->capacity * 2 : 64;
        Kept *larger = realloc(list->kept, capacity * sizeof(Kept));
        if (!larger) {
            free(kept->sites);
            return;
        }
        list->kept = larger;
        list->capacity = capacity;
    }
    list->kept[list->count] = *kept;
    // One that was asked for has the time of asking, and events may be a little older.
    if (list->count > 0)
        list->kept[list->count].moment.ns =
            max_u64(kept->moment.ns, list->kept[list->count - 1].moment.ns);
    list->count++;
    u32 asked = 0;
    u64 bytes = 0;
    for (u32 i = 0; i < list->count; i++) {
        asked += list->kept[i].is_asked;
        bytes += (u64)list->kept[i].live_count * (sizeof(u32) + sizeof(u64));
    }
    // One place is for the peak, and one for the end.
    if (list->count - asked >= (u32)model->options->max_snapshots - 2 || bytes > KEPT_BYTES_MAX)
        cull(model);
}

void snapshots_take(HeapModel *model)
{
    SnapshotList *list = &model->snapshots;
    u32 frequency = (u32)model->options->detailed_freq;
    Kept kept = snapshots_now(model, ++list->taken % frequency == 0);

    append(model, &kept);
    model->next_check = model_clock(model, &model->now) + list->interval;
}

void snapshots_ask(HeapModel *model, const Moment *moment)
{
    Kept kept = snapshots_now(model, true);
    kept.moment = *moment;
    kept.is_asked = model->snapshots.count < ASKED_MAX;
    append(model, &kept);
}

// -------------------------------------------------------------------- triggers

void triggers_init(HeapModel *model)
{
    const OptionList *list = &model->options->snapshot_when;

    for (u32 i = 0; i < list->count && model->trigger_count < TRIGGERS_MAX; i++) {
        OptionTrigger trigger;
        if (options_trigger(list->items[i], &trigger))
            model->triggers[model->trigger_count++] = (Trigger){.at = trigger};
    }
}

static u64 trigger_value(const HeapModel *model, const Trigger *trigger)
{
    switch (trigger->at.of) {
    case TRIGGER_HEAP: return model->totals.bytes[SPACE_HEAP];
    case TRIGGER_MAPPED: return model->totals.bytes[SPACE_MAPPED];
    case TRIGGER_STACKS: return model->totals.bytes[SPACE_STACK];
    default: return model->sampler.last_rss;
    }
}

// One that has fired does so again when its value has been below nine tenths of the limit.
void triggers_check(HeapModel *model)
{
    static const char *const labels[] = {
        [TRIGGER_HEAP] = "heap",
        [TRIGGER_MAPPED] = "mapped",
        [TRIGGER_STACKS] = "stacks",
        [TRIGGER_RSS] = "rss",
    };
    for (u32 i = 0; i < model->trigger_count; i++) {
        Trigger *trigger = &model->triggers[i];
        u64 value = trigger_value(model, trigger), limit = trigger->at.limit_bytes;
        if (trigger->is_above && value < limit - limit / 10)
            trigger->is_above = false;
        if (trigger->is_above || value <= limit)
            continue;
        trigger->is_above = true;
        snapshots_ask(model, &model->now);
        files_keep_state(model, STATE_THRESHOLD, labels[trigger->at.of], &model->now);
    }
}
