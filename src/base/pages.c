// SPDX-License-Identifier: MIT
//
// The kernel's memory calls, made without libc: a wrapper would write errno,
// which lives in a thread block that a raw clone child shares with its parent.
#include "base/pages.h"

#include <linux/mman.h>
#include <sys/syscall.h>

#define ERRNO_MAX 4095

static i64 syscall6(i64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    register u64 r10 __asm__("r10") = d;
    register u64 r8 __asm__("r8") = e;
    register u64 r9 __asm__("r9") = f;
    i64 result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void *pointer_or_null(i64 result)
{
    return (u64)result >= (u64)-ERRNO_MAX ? NULL : (void *)result;
}

static void *map_anonymous(u64 size_bytes, int protection, int flags)
{
    return pointer_or_null(syscall6(SYS_mmap, 0, PAGE_UP(size_bytes), (u64)protection,
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
    return syscall6(SYS_mprotect, (u64)pages, PAGE_UP(size_bytes), PROT_READ | PROT_WRITE, 0, 0,
                    0) == 0;
}

void *pages_resize(void *pages, u64 old_size_bytes, u64 new_size_bytes)
{
    return pointer_or_null(syscall6(SYS_mremap, (u64)pages, PAGE_UP(old_size_bytes),
                                    PAGE_UP(new_size_bytes), MREMAP_MAYMOVE, 0, 0));
}

void pages_discard(void *pages, u64 size_bytes)
{
    syscall6(SYS_madvise, (u64)pages, PAGE_UP(size_bytes), MADV_DONTNEED, 0, 0, 0);
}

void pages_unmap(void *pages, u64 size_bytes)
{
    syscall6(SYS_munmap, (u64)pages, PAGE_UP(size_bytes), 0, 0, 0, 0);
}
