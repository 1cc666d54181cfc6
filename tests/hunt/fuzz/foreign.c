// SPDX-License-Identifier: MIT
//
// Profiles of other programs: massif.out, pprof, heaptrack. What is taken must have sums that agree.
#include <stdlib.h>

#include "fuzz.h"
#include "inspect/foreign/foreign.h"

static void ignore(void *arg, const char *line)
{
    (void)arg, (void)line;
}

static void check_sums(Recording *recording)
{
    u32 count = recording_site_count(recording);
    SiteSums *sums = calloc((size_t)count + 1, sizeof(*sums));
    size_t slices = recording_slice_count(recording);
    u64 live = 0;

    FUZZ_CHECK(recording_range(recording, 0, recording_last(recording).ns + 1, sums));
    for (u32 i = 0; i < count; i++)
        live += sums[i].live_bytes;
    if (slices > 0) {
        const SpaceTotals *totals = &recording_slice(recording, slices - 1)->totals;
        FUZZ_CHECK(live == totals->bytes[SPACE_HEAP] + totals->bytes[SPACE_MAPPED] +
                               totals->bytes[SPACE_STACK]);
    }
    free(sums);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    char *error = NULL;
    Recording *recording = foreign_open(fuzz_file(data, size), ignore, NULL, &error);

    FUZZ_CHECK(recording || error);
    if (recording)
        check_sums(recording);
    recording_free(recording);
    free(error);
    return 0;
}
