// SPDX-License-Identifier: MIT
//
// Grows by doubling through mremap, which moves page tables and not bytes.
#include "base/vec.h"

#include <string.h>

#include "base/assert.h"
#include "base/pages.h"

void vec_init(Vec *vec, size_t element_bytes)
{
    ASSERT(element_bytes > 0);
    *vec = (Vec){ .element_bytes = element_bytes };
}

static bool grow(Vec *vec)
{
    size_t wanted = PAGE_UP(max_u64(vec->mapped_bytes * 2, vec->element_bytes));
    void *data = vec->data ? pages_resize(vec->data, vec->mapped_bytes, wanted) : pages_map(wanted);

    if (!data)
        return false;
    vec->data = data;
    vec->mapped_bytes = wanted;
    return true;
}

void *vec_push(Vec *vec, const void *element)
{
    ASSERT(vec->element_bytes > 0);
    if ((vec->count + 1) * vec->element_bytes > vec->mapped_bytes && !grow(vec))
        return NULL;

    void *place = vec->data + vec->count * vec->element_bytes;
    if (element)
        memcpy(place, element, vec->element_bytes);
    else
        memset(place, 0, vec->element_bytes);
    vec->count++;
    return place;
}

void *vec_at(const Vec *vec, size_t index)
{
    ASSERT(index < vec->count);
    return vec->data + index * vec->element_bytes;
}

void vec_pop(Vec *vec)
{
    ASSERT(vec->count > 0);
    vec->count--;
}

void vec_remove_unordered(Vec *vec, size_t index)
{
    void *hole = vec_at(vec, index);
    void *last = vec_at(vec, vec->count - 1);

    if (hole != last)
        memcpy(hole, last, vec->element_bytes);
    vec->count--;
}

void vec_clear(Vec *vec)
{
    vec->count = 0;
}

void vec_free(Vec *vec)
{
    if (vec->data)
        pages_unmap(vec->data, vec->mapped_bytes);
    vec_init(vec, vec->element_bytes);
}
