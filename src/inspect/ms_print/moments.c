// SPDX-License-Identifier: MIT
//
// Finding a moment, and what was live then.
#include "inspect/ms_print/moments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/massif_out.h"

static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"min", 6e10},
             {"h", 3.6e12}};

const char *moment_unit(const Recording *recording)
{
    static const char *const names[] = {"i", "ms", "B"}; // TIME_UNIT_ of the options
    const RecordingInfo *info = recording_info(recording);
    u32 unit = info->time_unit;

    return unit >= ARRAY_LEN(names) || (unit == 0 && !info->counts_instructions) ? "ms"
                                                                                : names[unit];
}

// ----------------------------------------------------------------- what was live

static SiteSums *new_sums(const Recording *recording)
{
    return calloc((size_t)recording_site_count(recording) + 1, sizeof(SiteSums));
}

// Sites are numbered as they first allocate.
static u32 count_known(const Recording *recording, const SiteSums *sums)
{
    u32 known = 0;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        if (sums[i].allocations > 0 || sums[i].live_bytes > 0)
            known = i + 1;
    }
    return known;
}

// Everything up to and with `moment`.
static bool take_moment(Recording *recording, const Moment *moment, RecordedMoment *ret_moment)
{
    SiteSums *live = new_sums(recording);

    if (!live || !recording_range(recording, 0, moment->ns + 1, live)) {
        free(live);
        return false;
    }
    *ret_moment = (RecordedMoment){
        .moment = *moment, .site_count = count_known(recording, live), .live = live};
    return true;
}

bool moment_of_peak(Recording *recording, RecordedMoment *ret_moment)
{
    size_t counted = recording_find_state(recording, STATE_PEAK_COUNTED);
    size_t index = counted != SIZE_MAX ? counted : recording_find_state(recording, STATE_PEAK);
    SiteSums *live = index != SIZE_MAX ? new_sums(recording) : NULL;
    RecordedMoment around; // a state knows only what is live

    if (!live || !recording_state(recording, index, live) ||
        !take_moment(recording, &recording_state_info(recording, index)->moment, &around)) {
        free(live);
        return false;
    }
    moment_free(&around);
    around.live = live;
    around.is_peak = true;
    *ret_moment = around;
    return true;
}

void moment_free(RecordedMoment *moment)
{
    free(moment->live);
    moment->live = NULL;
}

// ----------------------------------------------------------------------- finding

typedef struct Search {
    const char *unit;
    u64 wanted;
    Moment found; // the last one not beyond
} Search;

static bool look_at_event(void *arg, const HeapEvent *event)
{
    Search *search = arg;

    if (massif_out_time(search->unit, &event->time) > search->wanted)
        return false;
    search->found = event->time;
    return true;
}

// The last moment at which the clock of `unit` showed at most `wanted`.
static Moment find_by_clock(Recording *recording, const char *unit, u64 wanted)
{
    Search search = {.unit = unit, .wanted = wanted};
    size_t slice = 0, count = recording_slice_count(recording);

    for (; slice < count; slice++) {
        const SliceInfo *info = recording_slice(recording, slice);
        if (massif_out_time(unit, &info->end) > wanted)
            break;
        search.found = info->end;
    }
    if (slice == count)
        return search.found;
    const SliceInfo *info = recording_slice(recording, slice);
    if (info->has_events)
        recording_each_event(recording, info->start.ns, info->end.ns + 1, look_at_event, &search);
    if (strcmp(unit, "ms") == 0) // nothing happened between that event and the time itself
        search.found.ns = max_u64(search.found.ns, wanted * 1000000);
    return search.found;
}

static Moment find_by_ns(Recording *recording, u64 ns)
{
    Moment last = recording_last(recording);

    if (ns >= last.ns)
        return last;
    Moment found = find_by_clock(recording, "ms", ns / 1000000);
    found.ns = ns;
    return found;
}

bool moment_of_part(Recording *recording, size_t index, size_t count, RecordedMoment *ret_moment)
{
    size_t slices = recording_slice_count(recording);
    const char *unit = moment_unit(recording);
    Moment last = recording_last(recording);

    if (slices >= count || recording_events_kept_since_ns(recording) > 0) {
        size_t slice = (index + 1) * slices / count;
        return slice > 0 &&
               take_moment(recording, &recording_slice(recording, slice - 1)->end, ret_moment);
    }
    double share = (double)(index + 1) / (double)count;
    u64 time = (u64)((double)massif_out_time(unit, &last) * share);
    Moment moment = index + 1 == count ? last : find_by_clock(recording, unit, time);
    return take_moment(recording, &moment, ret_moment);
}

// False: it is no time.
static bool parse_time(Recording *recording, const char *text, Moment *ret_moment)
{
    char *end;
    double value = strtod(text, &end);
    Moment last = recording_last(recording);

    if (strcmp(text, "start") == 0 || strcmp(text, "end") == 0) {
        *ret_moment = *text == 's' ? (Moment){0} : last;
        return true;
    }
    if (end == text || !(value >= 0) || !isfinite(value) || value > 1e19)
        return false;
    if (*end == '\0') {
        *ret_moment = find_by_clock(recording, moment_unit(recording), (u64)value);
        return true;
    }
    if (strcmp(end, "%") == 0) {
        *ret_moment = find_by_ns(recording, (u64)((double)last.ns * fmin(value / 100, 1)));
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *ret_moment = find_by_ns(recording, (u64)fmin(value * units[i].ns, 1e19));
            return true;
        }
    }
    return false;
}

// Of what a bounded recording has sums only, the nearest end of such a span: the page then has that
// moment's time.
static void go_to_known(Recording *recording, Moment *moment)
{
    u64 nearest = recording_nearest_ns(recording, moment->ns + 1);
    Moment before = {0};

    if (nearest == moment->ns + 1)
        return;
    for (size_t i = 0; i < recording_slice_count(recording); i++) {
        const SliceInfo *slice = recording_slice(recording, i);
        if (slice->end.ns > moment->ns) {
            *moment = nearest > moment->ns + 1 ? slice->end : before;
            break;
        }
        before = slice->end;
    }
    moment->ns = nearest - 1;
}

bool moment_find(Recording *recording, const char *text, RecordedMoment *ret_moment,
                 char **ret_error)
{
    Moment moment;

    if (strcmp(text, "peak") == 0) {
        if (moment_of_peak(recording, ret_moment))
            return true;
        *ret_error = strdup("the recording has no peak: nothing was allocated, or it was cut off");
        return false;
    }
    if (!parse_time(recording, text, &moment)) {
        if (asprintf(ret_error, "%.40s is no time: 1.5s, 200ms, 50%%, start, peak, end, or a "
                                "number in %s", text, moment_unit(recording)) < 0)
            *ret_error = NULL;
        return false;
    }
    go_to_known(recording, &moment);
    if (take_moment(recording, &moment, ret_moment))
        return true;
    *ret_error = strdup("what was live then cannot be read");
    return false;
}
