// SPDX-License-Identifier: MIT
//
// An allocator of the program's own, which tells of its blocks by client requests.
#include <muninn/client.h>
#include <stddef.h>

static char memory[1 << 20];
static size_t used;

__attribute__((noinline)) static char *take(size_t size)
{
    char *block = memory + used;
    used += size + 16;
    MUNINN_MALLOCLIKE_BLOCK(block, size, 0, 0);
    return block;
}

int main(void)
{
    for (int i = 0; i < 100; i++) {
        char *block = take(1000);
        if (i % 2)
            MUNINN_FREELIKE_BLOCK(block, 0);
    }
    return 0;
}
