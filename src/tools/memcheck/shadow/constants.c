// SPDX-License-Identifier: MIT
//
// Memory that blocks take for constant (translate/constants.h). They go when it may have changed.
#include "engine/cache/cache.h"
#include "tools/memcheck/shadow/shadow.h"

enum { PLACES = 32 };

// Memory that blocks depend on; what is more than there is room for goes to the last.
static struct {
    GuestAddr start, end;
} places[PLACES];
static unsigned place_count;

void constants_note(GuestAddr start, GuestAddr end)
{
    unsigned i = 0;
    while (i < place_count && (start < places[i].start || end > places[i].end))
        i++;
    if (i < place_count)
        return;
    if (place_count < PLACES) {
        places[place_count].start = start;
        places[place_count++].end = end;
        return;
    }
    places[PLACES - 1].start = min_u64(places[PLACES - 1].start, start);
    places[PLACES - 1].end = max_u64(places[PLACES - 1].end, end);
}

void constants_forget(GuestAddr start, GuestAddr end)
{
    for (unsigned i = 0; i < place_count; i++) {
        if (start < places[i].end && end > places[i].start)
            cache_invalidate(max_u64(start, places[i].start), min_u64(end, places[i].end));
    }
}
