// SPDX-License-Identifier: MIT
//
// Memory for the records of aspace/: power-of-two sizes carved from chunks
// that come straight from the kernel, because engine code cannot use malloc
// (a raw fork may find its lock held). Never shrinks. Engine lock held.
#ifndef MUNINN_ENGINE_ASPACE_POOL_H
#define MUNINN_ENGINE_ASPACE_POOL_H

#include "base/types.h"

// Zeroed memory; never NULL (running out of memory here ends the process).
void *pool_alloc(size_t size);
void pool_free(void *p, size_t size);

// The one copy of a text, counted: each call takes a reference. NULL stays NULL.
const char *name_intern(const char *text);
const char *name_retain(const char *interned);
void name_release(const char *interned);

// Anonymous engine memory from the kernel, for tables; never NULL.
void *pool_map(size_t size);
void pool_unmap(void *p, size_t size);

#endif
