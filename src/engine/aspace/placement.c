// SPDX-License-Identifier: MIT
//
// Where a new mapping goes when the client leaves the choice to the kernel.
// Code goes low, so that the cache can reach it with 32-bit operands; all else
// goes down from the top of the high area, as the kernel does it natively, with
// the region of the break kept for the break.
#include "engine/aspace/aspace_internal.h"

typedef struct Window {
    GuestAddr low, high;
} Window;

// In the order in which they are tried. The bottom of the low area is left to
// programs that are linked to fixed addresses until the rest is full. A page
// next to the cache stays free, so that overruns fault.
static const Window low_windows[] = {
    {0x10000000ull, CACHE_START - PAGE_SIZE},
    {CACHE_END + PAGE_SIZE, CLIENT_HIGH_START},
    {CLIENT_LOW_START, 0x10000000ull},
};

// The same where the break lies behind the program.
static const Window low_windows_with_break[] = {
    {CACHE_END + PAGE_SIZE, CLIENT_HIGH_START},
    {0x10000000ull, CACHE_START - PAGE_SIZE},
    {CLIENT_LOW_START, 0x10000000ull},
};
static bool has_low_break; // engine lock

static const Window high_windows[] = {
    {BRK_LIMIT, HIGH_TOP},
    {CLIENT_HIGH_START + PAGE_SIZE, BRK_START},
    {HIGH_TOP, CLIENT_END - PAGE_SIZE},
    {BRK_START, BRK_LIMIT},
};

GuestAddr aspace_lowest;

static GuestAddr find_in(const Window *windows, size_t count, u64 len, u64 align)
{
    for (size_t i = 0; i < count; i++) {
        GuestAddr low = max_u64(windows[i].low, aspace_lowest);
        GuestAddr at = low < windows[i].high
                           ? tree_gap_highest(low, windows[i].high, len, align) : 0;
        if (at)
            return at;
    }
    return 0;
}

void placement_keep_low_room(GuestAddr start)
{
    has_low_break = start < CACHE_START;
}

GuestAddr place_find(PlaceKind kind, u64 len, u64 align)
{
    if (kind != PLACE_HIGH) {
        GuestAddr at = find_in(has_low_break ? low_windows_with_break : low_windows,
                               ARRAY_LEN(low_windows), len, align);
        if (at || kind == PLACE_LOW_ONLY)
            return at;
    }
    return find_in(high_windows, ARRAY_LEN(high_windows), len, align);
}

bool place_hint_is_free(GuestAddr addr, u64 len)
{
    if (addr < CLIENT_LOW_START || addr >= CLIENT_END || len > CLIENT_END - addr)
        return false;
    if (addr < CACHE_END && addr + len > CACHE_START)
        return false;
    return tree_gap_highest(addr, addr + len, len, PAGE_SIZE) == addr;
}
