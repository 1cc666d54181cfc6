// SPDX-License-Identifier: MIT
//
// Blocks that begin with a page: those of operator new for alignments of a page and more, small and
// with a mapping of their own; and pages that an operator new of the program's has from mmap, after
// a call of malloc for something else, with nothing before them. Says what all of them have.
// With an argument it does nothing.
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <sys/mman.h>

static std::size_t live;

void *operator new[](std::size_t size)
{
    char *pages = static_cast<char *>(mmap(nullptr, size + 4096, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    free(malloc(24));
    munmap(pages, 4096);
    live += size + 8;
    return pages + 4096;
}

void operator delete[](void *) noexcept {}

int main(int argc, char **)
{
    if (argc > 1)
        return 0;
    for (std::size_t i = 0; i < 40; i++) {
        void *block = operator new(100 + i * 7919, std::align_val_t(4096));
        live += malloc_usable_size(block) + 8;
    }
    void *large = operator new(3000000, std::align_val_t(65536));
    live += malloc_usable_size(large) + 8;
    for (int i = 0; i < 5; i++) {
        char *volatile pages = new char[5000];
        pages[0] = 1;
    }
    std::fprintf(stderr, "live: %zu\n", live);
    return 0;
}
