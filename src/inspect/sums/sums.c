// SPDX-License-Identifier: MIT
//
// Sums of sites, added up and put beside each other.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/sums/sums.h"

void site_sums_add(SiteSums *to, const SiteSums *from)
{
    saturate_grow_u64(&to->live_bytes, from->live_bytes);
    saturate_grow_u64(&to->live_blocks, from->live_blocks);
    saturate_grow_u64(&to->live_usable, from->live_usable);
    saturate_grow_u64(&to->allocated_bytes, from->allocated_bytes);
    saturate_grow_u64(&to->allocations, from->allocations);
    saturate_grow_u64(&to->freed_bytes, from->freed_bytes);
    saturate_grow_u64(&to->frees, from->frees);
    saturate_grow_u64(&to->temporary, from->temporary);
    saturate_grow_u64(&to->reallocations, from->reallocations);
    saturate_grow_u64(&to->peak_bytes, from->peak_bytes);
    if (from->first_ns || from->last_ns) {
        bool is_first = to->first_ns == 0 && to->last_ns == 0;
        to->first_ns = is_first ? from->first_ns : min_u64(to->first_ns, from->first_ns);
        to->last_ns = max_u64(to->last_ns, from->last_ns);
    }
}

bool site_sums_are_empty(const SiteSums *sums)
{
    return !sums->allocations && !sums->live_blocks && !sums->live_bytes && !sums->frees;
}

static void take_live(SiteSums *to, const SiteSums *from)
{
    to->live_bytes = from->live_bytes;
    to->live_blocks = from->live_blocks;
    to->live_usable = from->live_usable;
}

bool site_sums_of(Recording *recording, const Selection *selection, SiteSums *ret_sums,
             char **ret_error)
{
    u32 site_count = recording_site_count(recording);
    Selection run = *selection;

    run.at_peak = false;
    if (!selection_sums(recording, &run, ret_sums, ret_error))
        return false;
    if (!selection->at_peak)
        return true;
    SiteSums *peak = calloc((size_t)site_count + 1, sizeof(*peak));
    if (!peak) {
        *ret_error = strdup("no memory for the sums of the peak");
        return false;
    }
    bool ok = selection_sums(recording, selection, peak, ret_error);
    for (u32 i = 0; ok && i < site_count; i++)
        take_live(&ret_sums[i], &peak[i]);
    free(peak);
    return ok;
}
