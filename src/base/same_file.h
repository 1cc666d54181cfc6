// SPDX-License-Identifier: MIT
//
// Whether two names are of one file: what is read must not be written over.
#ifndef MUNINN_BASE_SAME_FILE_H
#define MUNINN_BASE_SAME_FILE_H

#include <sys/stat.h>

#include "base/types.h"

static inline bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

#endif
