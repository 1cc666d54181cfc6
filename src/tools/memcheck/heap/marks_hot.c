// SPDX-License-Identifier: MIT
//
// What the heap's blocks are in the shadow: the marks that the heap asks for, also from
// inside the cache.
#include "base/fill.h"
#include "base/raw_syscall.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

void heap_mark_noaccess(GuestAddr start, u64 size)
{
    shadow_make_noaccess(start, size);
}

void heap_mark_allocated(GuestAddr start, u64 size, bool is_zeroed, u32 context)
{
    (void)context;
    origins_forget(start, size);
    if (is_zeroed || !memcheck_options->undef_value_errors)
        shadow_make_defined(start, size);
    else
        shadow_make_touchable(start, size); // its V bytes are all ones already (H1, K1)
}

// Of the client's own memory nothing is known beforehand.
void heap_mark_adopted(GuestAddr start, u64 size, bool is_zeroed, u32 context)
{
    (void)context;
    origins_forget(start, size);
    if (is_zeroed || !memcheck_options->undef_value_errors)
        shadow_make_defined(start, size);
    else
        shadow_make_undefined(start, size);
}

void heap_mark_soon(GuestAddr start)
{
    __builtin_prefetch(shadow_of(start), 1);
    __builtin_prefetch(u_bits_of(start), 1);
}

// One call for all pages of a large range costs a fraction of a fault for each.
static void populate(u64 start, u64 size)
{
    enum { POPULATE_MIN = 64 * KiB, ADVISE_POPULATE_WRITE = 23 }; // since Linux 5.14
    if (UNLIKELY(size >= POPULATE_MIN))
        raw_syscall3(SYS_madvise, PAGE_UP(start), PAGE_DOWN(start + size) - PAGE_UP(start),
                     ADVISE_POPULATE_WRITE);
}

void heap_mark_copied(GuestAddr from, GuestAddr to, u64 size)
{
    populate(to, size);
    populate((u64)shadow_of(to), size);
    origins_copied(&thread_ctx, to, from, size);
    copy_bytes((u8 *)to, (const u8 *)from, size);
    copy_bytes(shadow_of(to), shadow_of(from), size);
}
