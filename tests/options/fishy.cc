// SPDX-License-Identifier: MIT
//
// Sizes that look negative.
#include <cstdlib>
#include <new>

#include <malloc.h>

int main()
{
    volatile long size = -1;
    void *volatile p = malloc((size_t)size);
    p = memalign(64, (size_t)size);
    p = operator new((size_t)size, std::nothrow);
    p = operator new[]((size_t)size, std::nothrow);
    return p != nullptr;
}
