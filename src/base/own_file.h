// SPDX-License-Identifier: MIT
//
// Writing to files of our own inside a process whose limits are somebody else's:
// RLIMIT_FSIZE shall neither cut what we write nor send the process a SIGXFSZ.
#ifndef MUNINN_BASE_OWN_FILE_H
#define MUNINN_BASE_OWN_FILE_H

#include "base/types.h"

// All of it, or false. No libc, no errno: safe in any context.
bool own_file_write(int fd, const void *data, u64 size_bytes);
// As ftruncate(2). 0 or -errno.
i64 own_file_resize(int fd, u64 size_bytes);

#endif
