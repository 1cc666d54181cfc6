// SPDX-License-Identifier: MIT
//
// What the fuzzers share. A fuzzer is one file beside this one with LLVMFuzzerTestOneInput(); the
// hunt `fuzz` gives it seeds, time and memory. docs/howto/hunt.md
#ifndef MUNINN_TESTS_HUNT_FUZZ_H
#define MUNINN_TESTS_HUNT_FUZZ_H

#include "base/types.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// A file with these bytes, until the next call; it is made anew each time.
const char *fuzz_file(const u8 *data, size_t size);
int fuzz_file_fd(void); // its descriptor

// A copy that ends in a zero byte, to be freed.
char *fuzz_text(const u8 *data, size_t size);

// Aborts with the words: something is wrong that no sanitizer sees.
#define FUZZ_CHECK(truth)                                                    \
    do {                                                                     \
        if (!(truth))                                                        \
            fuzz_fail(__FILE__, __LINE__, #truth);                           \
    } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

#endif
