// SPDX-License-Identifier: MIT
//
// The shadow of the address space: mapped with the client's memory, unmapped with it.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "tools/memcheck/memcheck.h"

#define V_BYTES CLIENT_END
#define U_BYTES (CLIENT_END / 8)

#define ONES_BYTES (1 * MiB)
static int ones_fd = -1; // hidden: a file of that many bytes 0xff

static void ones_moved(int fd)
{
    ones_fd = fd;
}

static void reserve(u64 start, u64 size)
{
    void *at = mmap((void *)start, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)start)
        log_refuse("the addresses of the shadow memory are taken, or the limit on address space "
                   "(ulimit -v) is too small for them");
}

// Fresh zero pages: defined, and to be touched.
static void open_range(u64 start, u64 end)
{
    void *at = mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED)
        log_refuse("no memory for the shadow of %llu bytes", (unsigned long long)(end - start));
}

static void close_range_of(u64 start, u64 end)
{
    mmap((void *)start, end - start, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

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
    make_ones();
    reserve(SHADOW_OFFSET, V_BYTES);
    reserve(PAGE_DOWN(U_MAP_OFFSET), U_BYTES + PAGE_SIZE);
    // The U map needs no mapping for what is not there; where it is, it starts as zero.
    ASSERT(mprotect((void *)PAGE_DOWN(U_MAP_OFFSET), U_BYTES + PAGE_SIZE,
                    PROT_READ | PROT_WRITE) == 0);
}

static bool in_client(GuestAddr start, GuestAddr end)
{
    return start < end && end <= CLIENT_END;
}

void shadow_mapped(GuestAddr start, GuestAddr end, u32 prot)
{
    (void)prot;
    if (!in_client(start, end))
        return;
    // A change of protection keeps what is known.
    if (shadow_is_mapped(start, end - start))
        return;
    open_range((u64)shadow_of(start), (u64)shadow_of(end));
}

void shadow_unmapped(GuestAddr start, GuestAddr end)
{
    u64 u_start, u_end;
    if (!in_client(start, end))
        return;
    close_range_of((u64)shadow_of(start), (u64)shadow_of(end));
    u_pages(start, end, &u_start, &u_end);
    if (end - start >= 8 * PAGE_SIZE && u_end - u_start > 2 * PAGE_SIZE) {
        madvise((void *)(u_start + PAGE_SIZE), u_end - u_start - 2 * PAGE_SIZE, MADV_DONTNEED);
        memset(u_bits_of(start), 0, u_start + PAGE_SIZE - (u64)u_bits_of(start));
        memset((void *)(u_end - PAGE_SIZE), 0, (u64)u_bits_of(end) - (u_end - PAGE_SIZE));
    } else {
        memset(u_bits_of(start), 0, (end - start) / 8);
    }
}

void shadow_moved(GuestAddr from, GuestAddr to, u64 size)
{
    if (!in_client(from, from + size) || !in_client(to, to + size))
        return;
    memcpy(shadow_of(to), shadow_of(from), size);
    memcpy(u_bits_of(to), u_bits_of(from), size / 8);
}

// mincore() fails where nothing is mapped, but a reservation counts as mapped; so ask for a
// byte of each page by a read that may fault.
bool shadow_is_mapped(GuestAddr start, u64 size)
{
    for (GuestAddr page = PAGE_DOWN(start); page < start + size; page += PAGE_SIZE) {
        if (page >= CLIENT_END || !engine_can_read(shadow_of(page)))
            return false;
        if (size > 64 * PAGE_SIZE && page < PAGE_DOWN(start + size - 1) - PAGE_SIZE)
            page = PAGE_DOWN(start + size - 1) - PAGE_SIZE; // the ends tell for the middle
    }
    return true;
}

// Stacks are large and mostly never touched: their shadow is a file of ones, mapped
// privately again and again, of which only the pages written to cost memory.
void shadow_open_stack(GuestAddr start, GuestAddr end)
{
    GuestAddr first = PAGE_UP(start), last = PAGE_DOWN(end);
    for (GuestAddr at = first; at < last; at += ONES_BYTES) {
        u64 size = min_u64(ONES_BYTES, last - at);
        if (ones_fd < 0 ||
            mmap(shadow_of(at), size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, ones_fd, 0) == MAP_FAILED)
            memset(shadow_of(at), 0xff, size);
    }
    memset(shadow_of(start), 0xff, min_u64(first, end) - start);
    if (last >= first)
        memset(shadow_of(last), 0xff, end - last);
}

bool shadow_fault(ToolThread *thread, u64 *address, bool *is_mapped)
{
    (void)thread;
    u64 client = *address - SHADOW_OFFSET;
    if (client >= CLIENT_END)
        return false;
    // A stack that the kernel has grown has no shadow there yet.
    if (lock_try(&engine_lock)) {
        const Mapping *mapping = aspace_find(client);
        bool mapped = mapping != NULL;
        *is_mapped = mapped;
        if (mapped && !shadow_is_mapped(client, 1))
            open_range((u64)shadow_of(mapping->start), (u64)shadow_of(mapping->end));
        else
            mapped = false;
        lock_release(&engine_lock);
        if (mapped)
            return true;
    }
    *address = client;
    return false;
}
