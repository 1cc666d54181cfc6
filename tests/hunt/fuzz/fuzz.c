// SPDX-License-Identifier: MIT
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int file = -1;

const char *fuzz_file(const u8 *data, size_t size)
{
    static char path[64];

    if (file >= 0)
        close(file);
    file = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(file >= 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return path;
}

int fuzz_file_fd(void)
{
    return file;
}

char *fuzz_text(const u8 *data, size_t size)
{
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void fuzz_fail(const char *name, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", name, line, what);
    abort();
}
