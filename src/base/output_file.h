// SPDX-License-Identifier: MIT
//
// Opening a file that the user has named for output. The name may lie in a directory where others
// can put things, such as /tmp: a symbolic link of theirs would lead us to one of the user's files.
//
// What is there decides. A regular file is emptied or appended to. Devices and FIFOs are written
// to. /dev/stdout, /dev/fd/N and their like are what the process has at that number, and others
// write there too, so nothing is cut off. A symbolic link is followed if it is the user's or
// root's, or if nobody else can put links where it lies.
#ifndef MUNINN_BASE_OUTPUT_FILE_H
#define MUNINN_BASE_OUTPUT_FILE_H

#include <stdio.h>

#include "base/types.h"

// What a refused link is told as; no other reason has this number.
#define OUTPUT_FOREIGN_LINK (-ELOOP)

// As open(2) with O_CREAT and O_CLOEXEC and mode 0666; `flags` are O_WRONLY or O_RDWR with O_TRUNC
// or O_APPEND or neither. Returns the descriptor or -errno. No libc but strings: safe in any
// context.
int output_open(const char *path, int flags);
// A new file that has no name yet, in the directory that `path` lies in: whoever is killed now
// leaves nothing. output_appear() gives it the name, with all that has been written to it by then.
// Both return -errno where that cannot be done: something has the name already, or the filesystem
// does not know such files, or there is no /proc. output_open() is the way then.
int output_open_unnamed(const char *path);
int output_appear(int fd, const char *path);
// Whether it could be opened now, without a change to what is there. 0 or -errno.
int output_probe(const char *path);
// /dev/stdout and its like.
bool output_is_borrowed(const char *path);
// Whether a forked child needs another name for its own: what is written to devices, FIFOs and
// /dev/stdout is kept by whoever reads it, and files beside them would be nobody's.
bool output_is_kept(const char *path);
// Why it could not be opened, for a message.
const char *output_error(int error);
// As fopen(path, "we"); NULL and *ret_error is -errno.
FILE *output_stream(const char *path, int *ret_error);

#endif
