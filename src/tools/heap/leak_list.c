// SPDX-License-Identifier: MIT
//
// The list of blocks that a check is given.
#include <linux/mman.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "tools/heap/leak_internal.h"

#define HUGE_PAGE_BYTES (2 * MiB)

void leak_prefer_huge_pages(void *memory, u64 size_bytes)
{
    if (size_bytes >= 2 * HUGE_PAGE_BYTES)
        raw_syscall3(SYS_madvise, (u64)memory, PAGE_UP(size_bytes), MADV_HUGEPAGE);
}

bool leak_list_reserve(LeakBlockList *list, u64 capacity)
{
    u64 bytes = PAGE_UP(max_u64(capacity, 1) * sizeof(LeakBlock));

    if (capacity <= list->capacity)
        return true;
    LeakBlock *blocks = list->blocks
                            ? pages_resize(list->blocks, list->capacity * sizeof(LeakBlock), bytes)
                            : pages_map(bytes);
    if (!blocks)
        return false;
    leak_prefer_huge_pages(blocks, bytes);
    list->blocks = blocks;
    list->capacity = bytes / sizeof(LeakBlock);
    return true;
}

bool leak_list_add(LeakBlockList *list, GuestAddr start, u64 size_bytes, u32 context)
{
    if (UNLIKELY(list->count == list->capacity) &&
        !leak_list_reserve(list, list->capacity + list->capacity / 2 + 4096))
        return false;
    list->blocks[list->count++] = leak_block(start, size_bytes, context);
    return true;
}

void leak_list_free(LeakBlockList *list)
{
    if (list->blocks)
        pages_unmap(list->blocks, list->capacity * sizeof(LeakBlock));
    *list = (LeakBlockList){0};
}
