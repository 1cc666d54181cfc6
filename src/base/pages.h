// SPDX-License-Identifier: MIT
//
// Anonymous memory straight from the kernel. Engine code may run in a raw fork
// child, inside a signal handler or while the client holds any lock of its own
// libc, so its containers never call malloc; they live on these four calls,
// which touch neither errno nor any lock.
//
// Sizes are in bytes and rounded up to whole pages. A refusal of the kernel is
// NULL or false; the caller decides whether that is fatal.
#ifndef MUNINN_BASE_PAGES_H
#define MUNINN_BASE_PAGES_H

#include "base/types.h"

// Zeroed, readable and writable.
void *pages_map(u64 size_bytes);

// Address space only: inaccessible and uncharged until pages_open().
void *pages_reserve(u64 size_bytes);
bool pages_open(void *pages, u64 size_bytes);

// May move the memory; what is added is zeroed. On failure the old mapping stays.
void *pages_resize(void *pages, u64 old_size_bytes, u64 new_size_bytes);

// Gives the memory back and leaves the range mapped, reading as zero.
void pages_discard(void *pages, u64 size_bytes);
void pages_unmap(void *pages, u64 size_bytes);

#endif
