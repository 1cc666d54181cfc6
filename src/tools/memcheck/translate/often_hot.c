// SPDX-License-Identifier: MIT
//
// See often.h.
#include "tools/memcheck/translate/often.h"

enum { PLACES = 1 << 15, TRIES = 8, OFTEN = 256, NARROW = 32 };

typedef struct Place {
    GuestAddr pc; // 0: free
    u32 count;    // atomic
} Place;

static Place places[PLACES]; // written under the engine lock, but for the counts
static u64 seen[512];        // bits by hash: most loads are in no place, which is found out here

// Bits by the same hash. That others share them costs a guard or a block.
static u64 wide[512], narrow[512]; // the latter atomic

static u64 hash(GuestAddr pc)
{
    return (pc * 0x9e3779b97f4a7c15ull) >> 49;
}

static Place *find(GuestAddr pc)
{
    u64 at = hash(pc);
    for (u32 i = 0; i < TRIES; i++) {
        Place *place = &places[(at + i) % PLACES];
        if (place->pc == pc || !place->pc)
            return place;
    }
    return NULL;
}

bool often_fails(GuestAddr pc)
{
    if (UNLIKELY(memcheck_options->stress & STRESS_OFTEN))
        return __builtin_cpu_supports("bmi2") != 0;
    if (!(seen[hash(pc) / 64] >> hash(pc) % 64 & 1))
        return false;
    const Place *place = find(pc);
    return place && place->pc && __atomic_load_n(&place->count, __ATOMIC_RELAXED) >= OFTEN;
}

bool often_fails_still(GuestAddr pc)
{
    const Place *place = find(pc);
    return place && place->pc && __atomic_load_n(&place->count, __ATOMIC_RELAXED) >= 2 * OFTEN;
}

void often_note_wide(GuestAddr pc)
{
    wide[hash(pc) / 64] |= 1ull << hash(pc) % 64;
}

bool often_is_narrow(GuestAddr pc)
{
    return __atomic_load_n(&narrow[hash(pc) / 64], __ATOMIC_RELAXED) >> hash(pc) % 64 & 1;
}

u64 often_place(GuestAddr pc)
{
    Place *place = find(pc);
    if (!place || __builtin_cpu_supports("bmi2") == 0)
        return 0;
    place->pc = pc;
    seen[hash(pc) / 64] |= 1ull << hash(pc) % 64;
    return (u64)place;
}

void often_failed(ToolThread *thread, u64 arg, GuestAddr unused)
{
    (void)unused;
    Place *place = (Place *)arg;
    u64 bit = hash(place->pc);
    u32 count = __atomic_add_fetch(&place->count, 1, __ATOMIC_RELAXED);
    bool narrows = count == NARROW && wide[bit / 64] >> bit % 64 & 1 && !often_is_narrow(place->pc);
    if (narrows) {
        __atomic_fetch_or(&narrow[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
        __atomic_store_n(&place->count, 0, __ATOMIC_RELAXED);
    }
    if (narrows || count == OFTEN || count == 2 * OFTEN)
        tool_remake(thread);
}
