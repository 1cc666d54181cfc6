// SPDX-License-Identifier: MIT
//
// Formatting for places where libc may not be called: signal handlers, panics,
// raw fork children. It always terminates the buffer and never writes past it.
#ifndef MUNINN_BASE_TEXT_H
#define MUNINN_BASE_TEXT_H

#include <stdarg.h>

#include "base/types.h"

// Understands %s %c %d %u %x %p %% , the length `l` (and `ll`, `z`) before d, u
// and x, and a width with `0` or `-` before it ("%08x", "%-12s"). A NULL string
// prints as (null); %p prints as 0x and hexadecimal digits. A conversion
// it does not know is copied as it stands, so that the mistake is visible.
//
// Returns the number of characters written, without the terminating zero: what
// did not fit is cut, so the result can be handed to write() as it is.
size_t text_format(char *buffer, size_t size_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t text_format_list(char *buffer, size_t size_bytes, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

// Reads lower-case hexadecimal digits, as /proc writes them, and steps over them.
u64 text_parse_hex(const char **text);

#endif
