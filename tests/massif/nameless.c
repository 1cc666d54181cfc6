// SPDX-License-Identifier: MIT
//
// A library that is stripped: what it exports has a name, what allocates for it has none.
#include <stdlib.h>

void *exported(size_t size);

static volatile size_t sink;

static __attribute__((noinline, noclone)) void *without_name(size_t size)
{
    void *block = malloc(size);
    sink++;
    return block;
}

void *exported(size_t size)
{
    void *block = without_name(size);
    sink++;
    return block;
}
