// SPDX-License-Identifier: MIT
#include "engine/landings/landings.h"

#include <string.h>

#include "base/pages.h"
#include "engine/log/log.h"

enum { CLOSED_BUCKETS = 4096 };

static u64 *const words = (u64 *)LANDING_TABLE;
static GuestAddr *const pcs = (GuestAddr *)LANDING_PCS;
static u32 count = 1;              // number 0 is nobody's
static u32 closed[CLOSED_BUCKETS]; // by pc: numbers whose blocks are gone, as lists
static u32 *next_closed;

static u32 *bucket_of(GuestAddr pc)
{
    return &closed[(pc ^ pc >> 12) % CLOSED_BUCKETS];
}

void landings_init(void)
{
    next_closed = pages_map(sizeof(*next_closed) * LANDINGS_MAX);
    if (!next_closed)
        log_refuse("no memory for the tables of the code cache");
}

static u32 take_closed(GuestAddr pc)
{
    for (u32 *at = bucket_of(pc); *at; at = &next_closed[*at]) {
        u32 number = *at;
        if (pcs[number] == pc) {
            *at = next_closed[number];
            return number;
        }
    }
    return 0;
}

u32 landing_take(GuestAddr pc)
{
    u32 number = take_closed(pc);
    if (number || count == LANDINGS_MAX)
        return number;
    pcs[count] = pc;
    return count++;
}

void landing_open(u32 number, CodePtr code)
{
    __atomic_store_n(&words[number], (u64)code << 32 | (u32)pcs[number], __ATOMIC_RELEASE);
}

void landing_close(u32 number)
{
    __atomic_store_n(&words[number], 0, __ATOMIC_RELEASE);
    u32 *bucket = bucket_of(pcs[number]);
    next_closed[number] = *bucket;
    *bucket = number;
}

void landings_close_all(void)
{
    memset(closed, 0, sizeof(closed));
    for (u32 i = 1; i < count; i++)
        landing_close(i);
}

bool landing_is_open(u32 number)
{
    return number < LANDINGS_MAX && words[number] != 0;
}

const char *landings_validate(u64 *ret_open)
{
    u64 open = 0, listed = 1;

    for (u32 i = 1; i < count; i++) {
        if (!words[i])
            continue;
        if ((u32)words[i] != pcs[i] || words[i] >> 32 == 0)
            return "L1: the word of a landing is not its return address with code above";
        open++;
    }
    for (u32 i = 0; i < CLOSED_BUCKETS; i++) {
        for (u32 number = closed[i]; number && listed <= count; number = next_closed[number]) {
            if (words[number] || bucket_of(pcs[number]) != &closed[i])
                return "L2: a landing that is open may be given out again";
            listed++;
        }
    }
    // Those that are taken and not open yet are in no list.
    if (listed + open > count)
        return "L2: a number of a landing is in two lists";
    *ret_open = open;
    return NULL;
}
