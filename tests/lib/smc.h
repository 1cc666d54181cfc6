// SPDX-License-Identifier: MIT
//
// For the tests of self-modifying code: writes `mov eax, value; ret` and maps pages to hold it.
#pragma once

#include "guest.h"
#include <sys/mman.h>

enum { PAGE = 4096 };
typedef int CodeFunction(void);

__attribute__((unused)) static uint8_t *put_return(void *where, int value)
{
    uint8_t *code = where;
    code[0] = 0xb8;
    memcpy(code + 1, &value, 4);
    code[5] = 0xc3;
    return code + 6;
}

__attribute__((unused)) static int call_code(void *where)
{
    return ((CodeFunction *)where)();
}

__attribute__((unused)) static void *map_pages(size_t size, int protection)
{
    void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}
