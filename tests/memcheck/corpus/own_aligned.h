// SPDX-License-Identifier: MIT
//
// The functions of own_aligned.c: in a file of their own, so that a report's innermost frame in the
// topic is the call.
#include <sys/mman.h>

NOINLINE void *aligned_alloc(size_t alignment, size_t size)
{
    corpus_sink[0] = alignment;
    return malloc(size + 1);
}

NOINLINE void free_sized(void *p, size_t size)
{
    corpus_sink[0] = size;
    free(p);
}

NOINLINE void free_aligned_sized(void *p, size_t alignment, size_t size)
{
    corpus_sink[0] = alignment + size;
    free(p);
}

// Calls the function with three arguments from code that belongs to no object, as another library
// would: what a program's own function is told by the same program may be left out by the compiler.
static NOINLINE void *call_from_elsewhere(void *function, void *a, size_t b, size_t c)
{
    static const u8 code[] = {
        0x48, 0x83, 0xec, 0x08, // sub rsp, 8
        0xff, 0xd1,             // call rcx
        0x48, 0x83, 0xc4, 0x08, // add rsp, 8
        0xc3,                   // ret
    };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    void *result = ((void *(*)(void *, size_t, size_t, void *))page)(a, b, c, function);
    munmap(page, 4096);
    return result;
}
