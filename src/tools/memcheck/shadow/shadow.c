// SPDX-License-Identifier: MIT
//
// The shadow of the address space: mapped with the client's memory, unmapped with it.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fill.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

#define V_BYTES SHADOWED_END
#define U_BYTES (SHADOWED_END / 8)

#define ONES_BYTES (1 * MiB)
static int ones_fd = -1; // hidden: a file of that many bytes 0xff

static void ones_moved(int fd)
{
    ones_fd = fd;
}

_Noreturn static void refuse(void)
{
    log_refuse("the addresses of the shadow memory are taken, or the limit on address space or "
               "data (ulimit -v, -d) is too small for them");
}

static void reserve(u64 start, u64 size)
{
    void *at = mmap((void *)start, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)start)
        refuse();
}

static void map_fresh(u64 start, u64 end)
{
    void *at = start < end ? mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
                           : NULL;
    if (at == MAP_FAILED)
        log_refuse("no memory for the shadow of %llu bytes", (unsigned long long)(end - start));
}

static void map_nothing(u64 start, u64 end)
{
    if (start < end)
        mmap((void *)start, end - start, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// ---------------------------------------------------------- which pages have a shadow

u64 *shadow_open_pages;

static void set_open(GuestAddr start, GuestAddr end, bool open)
{
    for (u64 page = start / PAGE_SIZE; page < end / PAGE_SIZE;) {
        u64 first = page % 64, count = min_u64(64 - first, end / PAGE_SIZE - page);
        u64 bits = (count == 64 ? ~0ull : (1ull << count) - 1) << first;
        u64 *at = &shadow_open_pages[page / 64];
        __atomic_store_n(at, open ? *at | bits : *at & ~bits, __ATOMIC_RELAXED);
        page += count;
    }
}

// The shadow of a range begins and ends within pages, of which the other part is that of its
// neighbours. Where these are not mapped their part may not be touched (K1).
static void open_edge(u64 page)
{
    GuestAddr first = page - SHADOW_OFFSET;
    if (shadow_is_open(first) || shadow_is_open(first + PAGE_SIZE - 1))
        return;
    map_fresh(page, page + PAGE_SIZE);
    shadow_make_noaccess(first, PAGE_SIZE);
}

// Zero: defined, and to be touched.
static void open_range(GuestAddr start, GuestAddr end)
{
    u64 first = PAGE_UP((u64)shadow_of(start)), last = PAGE_DOWN((u64)shadow_of(end));
    open_edge(first - PAGE_SIZE);
    open_edge(last);
    map_fresh(first, last);
    shadow_make_defined(start, first - SHADOW_OFFSET - start);
    shadow_make_defined(last - SHADOW_OFFSET, end - (last - SHADOW_OFFSET));
    set_open(start, end, true);
}

static void close_range_of(GuestAddr start, GuestAddr end)
{
    u64 first = PAGE_UP((u64)shadow_of(start)), last = PAGE_DOWN((u64)shadow_of(end));
    set_open(start, end, false);
    map_nothing(first, last);
    if (shadow_is_open(start - 1))
        shadow_make_noaccess(start, first - SHADOW_OFFSET - start);
    else
        map_nothing(first - PAGE_SIZE, first);
    if (shadow_is_open(end))
        shadow_make_noaccess(last - SHADOW_OFFSET, end - (last - SHADOW_OFFSET));
    else
        map_nothing(last, last + PAGE_SIZE);
}

// ------------------------------------------------------------------ the hooks

// The pages of the U map that lie wholly in the range; those at its ends are shared with
// neighbours and stay.
static void u_pages(GuestAddr start, GuestAddr end, u64 *ret_start, u64 *ret_end)
{
    *ret_start = PAGE_DOWN((u64)u_bits_of(start));
    *ret_end = PAGE_UP((u64)u_bits_of(end - 1) + 1);
}

static void make_ones(void)
{
    static u8 page[PAGE_SIZE];
    int fd = memfd_create("muninn-ones", MFD_CLOEXEC);
    memset(page, 0xff, sizeof(page));
    for (u64 at = 0; fd >= 0 && at < ONES_BYTES; at += sizeof(page)) {
        if (write(fd, page, sizeof(page)) != sizeof(page))
            return;
    }
    ones_fd = descriptor_hide(fd, ones_moved);
    close(fd);
}

void shadow_init(void)
{
    fill_init();
    make_ones();
    shadow_open_pages = mmap(NULL, SHADOWED_END / PAGE_SIZE / 8, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shadow_open_pages == MAP_FAILED)
        refuse();
    aspace_end = SHADOWED_END;
    reserve(PAGE_DOWN(SHADOW_OFFSET), V_BYTES + PAGE_SIZE);
    reserve(PAGE_DOWN(U_MAP_OFFSET), U_BYTES + PAGE_SIZE);
    // The U map needs no mapping for what is not there; where it is, it starts as zero.
    if (mprotect((void *)PAGE_DOWN(U_MAP_OFFSET), U_BYTES + PAGE_SIZE, PROT_READ | PROT_WRITE) != 0)
        refuse();
}

static bool in_client(GuestAddr start, GuestAddr end)
{
    return start < end && end <= SHADOWED_END;
}

void shadow_mapped(GuestAddr start, GuestAddr end, u32 prot)
{
    (void)prot;
    if (!in_client(start, end))
        return;
    constants_forget(start, end);
    // A change of protection keeps what is known.
    if (shadow_is_mapped_now(start, end - start))
        return;
    open_range(start, end);
}

void shadow_unmapped(GuestAddr start, GuestAddr end)
{
    u64 u_start, u_end;
    if (!in_client(start, end))
        return;
    constants_forget(start, end);
    shadow_forget_forbidden(start, end);
    u_pages(start, end, &u_start, &u_end);
    if (end - start >= 8 * PAGE_SIZE && u_end - u_start > 2 * PAGE_SIZE) {
        madvise((void *)(u_start + PAGE_SIZE), u_end - u_start - 2 * PAGE_SIZE, MADV_DONTNEED);
        memset(u_bits_of(start), 0, u_start + PAGE_SIZE - (u64)u_bits_of(start));
        memset((void *)(u_end - PAGE_SIZE), 0, (u64)u_bits_of(end) - (u_end - PAGE_SIZE));
    } else {
        memset(u_bits_of(start), 0, (end - start) / 8);
    }
    close_range_of(start, end);
}

void shadow_moved(GuestAddr from, GuestAddr to, u64 size)
{
    if (!in_client(from, from + size) || !in_client(to, to + size))
        return;
    memcpy(shadow_of(to), shadow_of(from), size);
    memcpy(u_bits_of(to), u_bits_of(from), size / 8);
}

// Stacks are large and mostly never touched: their shadow is a file of ones, mapped
// privately again and again, of which only the pages written to cost memory.
void shadow_open_stack(GuestAddr start, GuestAddr end)
{
    u64 from = (u64)shadow_of(start), to = (u64)shadow_of(end);
    u64 first = PAGE_UP(from), last = PAGE_DOWN(to);
    if (start >= end) // a stack that is shorter than a red zone
        return;
    for (u64 at = first; at < last; at += ONES_BYTES) {
        u64 size = min_u64(ONES_BYTES, last - at);
        if (ones_fd < 0 ||
            mmap((void *)at, size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, ones_fd, 0) == MAP_FAILED)
            memset((void *)at, 0xff, size);
    }
    memset((void *)from, 0xff, min_u64(first, to) - from);
    if (last >= first)
        memset((void *)last, 0xff, to - last);
}

// Each makes a mapping or two more, of which the kernel allows 65,530. Those of whole blocks are
// not counted: they are unmapped soon.
enum { PARKED_MAX = 16384 };

// Pages of the same place in the file of ones are one mapping with their neighbours. What is
// there are ones already: a refusal costs memory, no more.
static void map_ones(u64 start, u64 end)
{
    for (u64 at = start, size; at < end; at += size) {
        size = min_u64(ONES_BYTES - at % ONES_BYTES, end - at);
        raw_syscall6(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, (u64)ones_fd, at % ONES_BYTES);
    }
}

void shadow_park(GuestAddr start, u64 size)
{
    static u32 count; // atomic
    u64 first = PAGE_UP((u64)shadow_of(start)), last = PAGE_DOWN((u64)shadow_of(start + size));
    GuestAddr page = PAGE_UP(start), end = PAGE_DOWN(start + size);
    if (first >= last || page >= end || !shadow_is_mapped_now(start, size))
        return;
    raw_syscall3(SYS_madvise, page, end - page, MADV_DONTNEED);
    if (ones_fd < 0 ||
        (size < MiB && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) > PARKED_MAX))
        return;
    map_ones(first, last);
}

// What lies below the part that has a shadow.
static void open_grown(const Mapping *mapping)
{
    GuestAddr end = mapping->start;
    while (end < mapping->end && !shadow_is_open(end))
        end += PAGE_SIZE;
    if (end > mapping->start)
        open_range(mapping->start, end);
}

bool shadow_fault(ToolThread *thread, u64 *address, bool *is_mapped)
{
    (void)thread;
    u64 client = *address - SHADOW_OFFSET;
    if (client >= SHADOWED_END)
        return false;
    // A stack that the kernel has grown has no shadow there yet.
    if (lock_try(&engine_lock)) {
        const Mapping *mapping = aspace_find(client);
        if (!mapping && aspace_grow(client))
            mapping = aspace_find(client);
        bool mapped = mapping != NULL;
        *is_mapped = mapped;
        if (mapped && !shadow_is_mapped_now(client, 1))
            open_grown(mapping);
        else
            mapped = false;
        lock_release(&engine_lock);
        if (mapped)
            return true;
    }
    *address = client;
    return false;
}
