// SPDX-License-Identifier: MIT
//
// Which moments massif.out shows. At first every event is one; when there are too many,
// every second goes, those first that lie nearest to their neighbours, and from then
// on none is taken sooner than the gaps that are left. So they are spread over the whole
// run, however long it is, and a run of n events takes about log(n) times --max-snapshots.
//
// The peak is none of these: M2 knows it exactly when it is asked for.
#include <stdlib.h>
#include <string.h>

#include "monitor/heap/model.h"

enum { ASKED_MAX = 10000 }; // that stay; more are culled like the others

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
    model->snapshots = (SnapshotList){0};
}

// The space whose tree massif.out has.
static Space tree_space(const HeapModel *model)
{
    return model->counts[SPACE_MAPPED] ? SPACE_MAPPED : SPACE_HEAP;
}

typedef Live LiveOfFn(const HeapModel *model, const Site *site);

static Live live_now(const HeapModel *model, const Site *site)
{
    (void)model;
    return site->live;
}

static Live live_at_peak(const HeapModel *model, const Site *site)
{
    return site_at_peak(model, site, PEAK_MAIN);
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

// One pass over the sites; in a second one, if there is to be a tree, what each has.
static Kept keep(HeapModel *model, const Moment *moment, bool detailed, LiveOfFn *live_of)
{
    Kept kept = {.moment = *moment, .site_count = model->site_count};
    u32 live_count = 0;

    for (u32 i = 0; i < model->site_count; i++) {
        Live live = live_of(model, &model->sites[i]);
        add_figures(model, &kept, &model->sites[i], &live);
        live_count += model->sites[i].space == tree_space(model) && live.bytes != 0;
    }
    if (!detailed || !model->counts[tree_space(model)])
        return kept;
    kept.sites = malloc((live_count + 1) * (sizeof(u64) + sizeof(u32)) + sizeof(u64));
    if (!kept.sites)
        return kept;
    kept.is_detailed = true;
    // The bytes stand behind the sites, where they are aligned.
    kept.bytes = (u64 *)(void *)(kept.sites + ((live_count + 1) & ~1u));
    for (u32 i = 0; i < model->site_count; i++) {
        Live live = live_of(model, &model->sites[i]);
        if (model->sites[i].space != tree_space(model) || live.bytes == 0)
            continue;
        kept.sites[kept.live_count] = i;
        kept.bytes[kept.live_count++] = live.bytes;
    }
    return kept;
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
    return detailed ? keep(model, &model->now, true, live_now) : keep_totals(model);
}

Kept snapshots_peak(HeapModel *model)
{
    Kept kept = keep(model, &model->peaks[PEAK_MAIN].moment, true, live_at_peak);
    kept.site_count = model->peaks[PEAK_MAIN].site_count;
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
    u32 wanted = list->count / 2;
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
    for (u32 i = 0; i < list->count; i++)
        asked += list->kept[i].is_asked;
    // One place is for the peak, and one for the end.
    if (list->count - asked >= (u32)model->options->max_snapshots - 2)
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
