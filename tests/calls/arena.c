// SPDX-License-Identifier: MIT
//
// The memory that arguments point to, always at the same addresses.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "muninn/client.h"
#include "walker.h"

static u8 before[CLAIMED_BYTES];
static bool is_watched; // by memcheck, or a tool that knows its requests

static u64 start_of(Place place)
{
    return ARENA + (u64)place * PLACE_BYTES;
}

static bool has_memory(Place place)
{
    return place != PLACE_HOLE;
}

static void map(Place place)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void *at = mmap((void *)start_of(place), PLACE_FILLED, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at != (void *)start_of(place))
        perror("the arena");
}

static void fill(Place place, Content content)
{
    u64 *words = (u64 *)start_of(place);
    u64 target = start_of(content == CONTENT_DANGLING ? PLACE_HOLE : PLACE_GOOD) + 0x1800;

    for (u32 i = 0; i < PLACE_FILLED / sizeof(u64); i++) {
        switch (content) {
        case CONTENT_TEXT: words[i] = 'f'; break;
        case CONTENT_POINTERS:
        case CONTENT_DANGLING: words[i] = i % 2 == 0 ? target : 8; break;
        default: words[i] = 0; break;
        }
    }
}

void arena_make(void)
{
    for (Place place = 0; place < PLACES; place++)
        if (has_memory(place))
            map(place);
    fill(PLACE_CONSTANT, CONTENT_TEXT);
    mprotect((void *)start_of(PLACE_CONSTANT), PLACE_FILLED, PROT_READ);
    is_watched = MUNINN_MAKE_MEM_DEFINED((void *)ARENA, 8) != 0;
}

void arena_fill(Content content)
{
    static const Place filled[] = {PLACE_GOOD, PLACE_UNDEFINED, PLACE_NOACCESS, PLACE_EDGE};

    (void)MUNINN_MAKE_MEM_DEFINED((void *)start_of(PLACE_NOACCESS), PLACE_FILLED);
    for (size_t i = 0; i < sizeof(filled) / sizeof(filled[0]); i++)
        fill(filled[i], content);
    // No string ends at the edge.
    memcpy((u8 *)start_of(PLACE_EDGE) + PLACE_FILLED - 4, "edge", 4);
    for (Place place = 0; place < PLACES && !is_watched; place++)
        if (has_memory(place) && place != PLACE_SCRATCH)
            memcpy(before + place * PLACE_FILLED, (void *)start_of(place), PLACE_FILLED);
    (void)MUNINN_MAKE_MEM_UNDEFINED((void *)start_of(PLACE_UNDEFINED), PLACE_FILLED);
    (void)MUNINN_MAKE_MEM_NOACCESS((void *)start_of(PLACE_NOACCESS), PLACE_FILLED);
}

u64 place_address(Place place, u32 arg)
{
    if (place == PLACE_EDGE)
        return start_of(place) + PLACE_FILLED - 4;
    if (place == PLACE_SCRATCH)
        return start_of(place);
    return start_of(place) + 0x200 * (arg + 1);
}

Place place_of(u64 address)
{
    u64 offset = address - ARENA;

    if (address < ARENA || offset >= PLACES * PLACE_BYTES || offset % PLACE_BYTES >= PLACE_FILLED)
        return PLACE_HOLE;
    return (Place)(offset / PLACE_BYTES);
}

u8 *claim_of(u8 *claimed, u64 address)
{
    u64 offset = address - ARENA;

    if (address < ARENA || offset >= PLACES * PLACE_BYTES || offset % PLACE_BYTES >= PLACE_FILLED)
        return NULL;
    return claimed + offset / PLACE_BYTES * PLACE_FILLED + offset % PLACE_BYTES;
}

static bool find_unclaimed(const u8 *claimed, char *ret_text, size_t size)
{
    for (Place place = 0; place < PLACES; place++) {
        const u8 *now = (u8 *)start_of(place);
        for (u32 i = 0; place != PLACE_SCRATCH && has_memory(place) && i < PLACE_FILLED; i++) {
            u32 at = (u32)place * PLACE_FILLED + i;
            if (now[i] == before[at] || claimed[at])
                continue;
            snprintf(ret_text, size, "byte 0x%x of place %u is written, and the row does not say so",
                     i, place);
            return true;
        }
    }
    return false;
}

static bool find_wrong_bits(const u8 *claimed, char *ret_text, size_t size)
{
    static u8 bits[PLACE_FILLED];

    claimed += PLACE_UNDEFINED * PLACE_FILLED;
    if (MUNINN_GET_VBITS((void *)start_of(PLACE_UNDEFINED), bits, PLACE_FILLED) != 1)
        return false; // the call has changed the mapping
    for (u32 i = 0; i < PLACE_FILLED; i++) {
        if (bits[i] == (claimed[i] ? 0 : 0xff))
            continue;
        snprintf(ret_text, size, "byte 0x%x behind the undefined ones is %s", i,
                 claimed[i] ? "written, and not defined" : "defined, and not written");
        return true;
    }
    return false;
}

bool arena_find_difference(const u8 *claimed, char *ret_text, size_t size)
{
    return (is_watched ? find_wrong_bits : find_unclaimed)(claimed, ret_text, size);
}
