// SPDX-License-Identifier: MIT
//
// Text that grows, and the one place where text of the client (names, paths,
// source lines) is made harmless for whoever reads the output.
#ifndef MUNINN_MONITOR_REPORT_BUFFER_H
#define MUNINN_MONITOR_REPORT_BUFFER_H

#include <stdarg.h>

#include "base/types.h"

typedef struct Buffer {
    char *data; // not terminated; NULL while nothing was put
    size_t size, capacity;
    bool failed; // memory ran out: the rest was dropped
} Buffer;

void buffer_put(Buffer *buffer, const void *data, size_t size);
void buffer_puts(Buffer *buffer, const char *text);
void buffer_putc(Buffer *buffer, char c);
void buffer_printf(Buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_vprintf(Buffer *buffer, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
// 1,234,567
void buffer_put_commas(Buffer *buffer, u64 number);
void buffer_clear(Buffer *buffer);
void buffer_free(Buffer *buffer);

// Who reads. What none of them may get raw is shown as \xNN or \u{NNNN}:
// control characters, and what the reader's format cannot express.
typedef enum Reader {
    READER_LOG,      // a text file: other bytes stay as they are
    READER_TERMINAL, // also no invalid UTF-8, and no codes that reorder a line
    READER_XML,      // < > & escaped, only characters of XML 1.0
    READER_JSON,     // inside a string
} Reader;
void buffer_put_safe(Buffer *buffer, const char *text, size_t size, Reader reader);
void buffer_puts_safe(Buffer *buffer, const char *text, Reader reader);

// The character at `text`: its length, or 0 if the bytes are not UTF-8.
size_t utf8_decode(const char *text, size_t size, u32 *ret_point);

#endif
