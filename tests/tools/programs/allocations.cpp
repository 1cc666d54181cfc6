// SPDX-License-Identifier: MIT
//
// Allocates and frees in every way once; each line says in a comment what a tool is to be told.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

static void *volatile p;
static volatile std::size_t huge = SIZE_MAX / 2;

int main()
{
    p = malloc(10);                            // TOLD allocated 10
    p = realloc(p, 2000);                      // TOLD resized 2000
    free(p);                                   // TOLD freed 0
    p = realloc(nullptr, 30);                  // TOLD allocated 30
    free(p);                                   // TOLD freed 0
    p = calloc(4, 10);                         // TOLD allocated 40
    free(p);                                   // TOLD freed 0
    free(nullptr);
    p = malloc(huge);
    p = ::operator new(50);                    // TOLD allocated 50
    ::operator delete(p);                      // TOLD freed 0
    p = ::operator new[](60);                  // TOLD allocated 60
    ::operator delete[](p);                    // TOLD freed 0
    try {
        p = ::operator new(huge);
    } catch (const std::bad_alloc &) {
        p = malloc(70);                        // TOLD allocated 70
        free(p);                               // TOLD freed 0
    } // the exception, by functions that jump to free():  TOLD freed 0
    void *aligned = nullptr;
    if (posix_memalign(&aligned, 64, 80) == 0) // TOLD allocated 80
        p = aligned;
    free(p);                                   // TOLD freed 0
    p = aligned_alloc(64, 128);                // TOLD allocated 128
    free(p);                                   // TOLD freed 0
    p = ::operator new(90, std::align_val_t(64)); // TOLD allocated 90
    ::operator delete(p, std::align_val_t(64)); // TOLD freed 0
    p = malloc(100);                           // TOLD allocated 100
    p = realloc(p, 0);                         // TOLD freed 0
    return 0;
}
