// SPDX-License-Identifier: MIT
//
// Moments of a recording, as people name them: "1.5s", "200ms", "50%", "start", "peak", "end", or a
// plain number in the unit of the page's time column.
#ifndef MUNINN_INSPECT_MS_PRINT_MOMENTS_H
#define MUNINN_INSPECT_MS_PRINT_MOMENTS_H

#include "recording/recording.h"

typedef struct RecordedMoment {
    Moment moment;
    bool is_peak;
    u32 site_count; // of those that had allocated by then
    SiteSums *live; // of every site; to be freed
} RecordedMoment;

// "i", "ms" or "B".
const char *moment_unit(const Recording *recording);
bool moment_find(Recording *recording, const char *text, RecordedMoment *ret_moment,
                 char **ret_error);
// The end of part `index` of `count` parts of the run: equal in time where every event is kept,
// else so many slices.
bool moment_of_part(Recording *recording, size_t index, size_t count, RecordedMoment *ret_moment);
bool moment_of_peak(Recording *recording, RecordedMoment *ret_moment);
void moment_free(RecordedMoment *moment);

#endif
