// SPDX-License-Identifier: MIT
//
// A growable array of equal elements in memory of its own (base/pages.h).
// Growing may move the elements: keep indices, not pointers. Not thread-safe.
#ifndef MUNINN_BASE_VEC_H
#define MUNINN_BASE_VEC_H

#include "base/types.h"

typedef struct Vec {
    u8 *data; // NULL until the first push
    size_t count;
    size_t element_bytes;
    size_t mapped_bytes;
} Vec;

void vec_init(Vec *vec, size_t element_bytes);

// Appends a copy of *element, or a zeroed element when it is NULL. Returns where
// it lies, or NULL when the kernel has no memory.
void *vec_push(Vec *vec, const void *element);

// The index must be below vec->count.
void *vec_at(const Vec *vec, size_t index);

// Removes the last element; there must be one.
void vec_pop(Vec *vec);

// Removes the element by moving the last one into its place.
void vec_remove_unordered(Vec *vec, size_t index);

void vec_clear(Vec *vec);

// Gives the memory back; the vec is then empty and may be used again.
void vec_free(Vec *vec);

#endif
