// SPDX-License-Identifier: MIT
//
// The kernel's memory calls.
#include "base/pages.h"

#include <linux/mman.h>

#include "base/raw_syscall.h"

static void *pointer_or_null(i64 result)
{
    return raw_failed(result) ? NULL : (void *)result;
}

static void *map_anonymous(u64 size_bytes, int protection, int flags)
{
    return pointer_or_null(raw_syscall6(SYS_mmap, 0, PAGE_UP(size_bytes), (u64)protection,
                                        MAP_PRIVATE | MAP_ANONYMOUS | (u64)flags, (u64)-1, 0));
}

void *pages_map(u64 size_bytes)
{
    return map_anonymous(size_bytes, PROT_READ | PROT_WRITE, 0);
}

void *pages_reserve(u64 size_bytes)
{
    return map_anonymous(size_bytes, PROT_NONE, MAP_NORESERVE);
}

bool pages_open(void *pages, u64 size_bytes)
{
    return raw_syscall3(SYS_mprotect, (u64)pages, PAGE_UP(size_bytes), PROT_READ | PROT_WRITE) == 0;
}

void *pages_resize(void *pages, u64 old_size_bytes, u64 new_size_bytes)
{
    return pointer_or_null(raw_syscall4(SYS_mremap, (u64)pages, PAGE_UP(old_size_bytes),
                                        PAGE_UP(new_size_bytes), MREMAP_MAYMOVE));
}

void pages_discard(void *pages, u64 size_bytes)
{
    raw_syscall3(SYS_madvise, (u64)pages, PAGE_UP(size_bytes), MADV_DONTNEED);
}

void pages_unmap(void *pages, u64 size_bytes)
{
    raw_syscall2(SYS_munmap, (u64)pages, PAGE_UP(size_bytes));
}
