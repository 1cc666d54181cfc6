// SPDX-License-Identifier: MIT
//
// See buffer.h. Names come from debug info and from the client's memory, so
// every byte is possible, escape sequences of terminals among them.
#include "monitor/report/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(Buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    if (buffer->capacity - buffer->size >= more)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity - buffer->size < more)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void buffer_put(Buffer *buffer, const void *data, size_t size)
{
    if (size == 0 || !make_room(buffer, size))
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void buffer_puts(Buffer *buffer, const char *text)
{
    buffer_put(buffer, text, strlen(text));
}

void buffer_putc(Buffer *buffer, char c)
{
    buffer_put(buffer, &c, 1);
}

void buffer_vprintf(Buffer *buffer, const char *format, va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (size < 0 || !make_room(buffer, (size_t)size + 1))
        return;
    vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, arguments);
    buffer->size += (size_t)size;
}

void buffer_printf(Buffer *buffer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    buffer_vprintf(buffer, format, arguments);
    va_end(arguments);
}

void buffer_put_commas(Buffer *buffer, u64 number)
{
    char text[32];
    size_t at = sizeof(text), digits = 0;

    do {
        if (digits && digits % 3 == 0)
            text[--at] = ',';
        text[--at] = (char)('0' + number % 10);
        number /= 10;
        digits++;
    } while (number);
    buffer_put(buffer, text + at, sizeof(text) - at);
}

void buffer_clear(Buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

void buffer_free(Buffer *buffer)
{
    free(buffer->data);
    *buffer = (Buffer){0};
}

size_t utf8_decode(const char *text, size_t size, u32 *ret_point)
{
    static const u32 smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const u8 *bytes = (const u8 *)text;

    if (size == 0)
        return 0;
    size_t length = bytes[0] < 0x80             ? 1
                    : (bytes[0] & 0xe0) == 0xc0 ? 2
                    : (bytes[0] & 0xf0) == 0xe0 ? 3
                    : (bytes[0] & 0xf8) == 0xf0 ? 4
                                                : 0;
    if (length == 0 || length > size)
        return 0;
    u32 point = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (bytes[i] & 0x3f);
    }
    if (length > 1 && (point < smallest[length] || point > 0x10ffff || point >> 11 == 0x1b))
        return 0;
    *ret_point = point;
    return length;
}

// Characters by which a name could reorder the line it stands in.
static bool reorders_text(u32 point)
{
    return (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
           point == 0x200e || point == 0x200f || point == 0x2028 || point == 0x2029;
}

static void put_escaped_byte(Buffer *buffer, u8 byte, Reader reader)
{
    buffer_printf(buffer, reader == READER_JSON ? "\\\\x%02x" : "\\x%02x", byte);
}

static void put_control(Buffer *buffer, u8 c, Reader reader)
{
    if (reader == READER_JSON)
        buffer_printf(buffer, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\u%04x", c);
    else if (c == '\t' || (c == '\n' && reader == READER_XML))
        buffer_putc(buffer, (char)c);
    else
        put_escaped_byte(buffer, c, reader);
}

// A character of more than one byte, or DEL.
static void put_wide(Buffer *buffer, const char *text, size_t length, u32 point, Reader reader)
{
    bool hide = false;

    switch (reader) {
    case READER_LOG:
        hide = point < 0xa0;
        break;
    case READER_TERMINAL:
        hide = point < 0xa0 || reorders_text(point);
        break;
    case READER_XML:
        hide = point < 0xa0 || (point & 0xfffe) == 0xfffe;
        break;
    case READER_JSON:
        break;
    }
    if (hide)
        buffer_printf(buffer, "\\u{%x}", point);
    else
        buffer_put(buffer, text, length);
}

static void put_ascii(Buffer *buffer, char c, Reader reader)
{
    if (reader == READER_XML && c == '<')
        buffer_puts(buffer, "&lt;");
    else if (reader == READER_XML && c == '>')
        buffer_puts(buffer, "&gt;");
    else if (reader == READER_XML && c == '&')
        buffer_puts(buffer, "&amp;");
    else if (reader == READER_JSON && (c == '"' || c == '\\'))
        buffer_put(buffer, (char[]){'\\', c}, 2);
    else
        buffer_putc(buffer, c);
}

// How many bytes from the start are letters that every reader may have as they are.
static size_t plain_length(const char *text, size_t size)
{
    size_t length = 0;

    while (length < size && (u8)text[length] >= 0x20 && (u8)text[length] < 0x7f &&
           !strchr("<>&\"\\", text[length]))
        length++;
    return length;
}

void buffer_put_safe(Buffer *buffer, const char *text, size_t size, Reader reader)
{
    for (size_t i = 0; i < size;) {
        size_t plain = plain_length(text + i, size - i);
        if (plain) {
            buffer_put(buffer, text + i, plain);
            i += plain;
            continue;
        }
        u32 point;
        size_t length = utf8_decode(text + i, size - i, &point);
        u8 byte = (u8)text[i];

        if (length == 0) {
            if (reader == READER_LOG && byte >= 0xa0)
                buffer_putc(buffer, text[i]);
            else
                put_escaped_byte(buffer, byte, reader);
            length = 1;
        } else if (byte < 0x20) {
            put_control(buffer, byte, reader);
        } else if (byte < 0x7f) {
            put_ascii(buffer, text[i], reader);
        } else {
            put_wide(buffer, text + i, length, point, reader);
        }
        i += length;
    }
}

void buffer_puts_safe(Buffer *buffer, const char *text, Reader reader)
{
    if (text)
        buffer_put_safe(buffer, text, strlen(text), reader);
}
