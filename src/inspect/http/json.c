// SPDX-License-Identifier: MIT
//
// See json.h.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/http/json.h"

void json_free(Json *json)
{
    free(json->data);
    *json = (Json){0};
}

static bool make_room(Json *json, size_t size)
{
    if (json->failed || size > JSON_MAX_BYTES || json->size + size > JSON_MAX_BYTES) {
        json->failed = true;
        return false;
    }
    if (json->size + size + 1 > json->capacity) {
        size_t capacity = json->capacity ? 2 * json->capacity : 4096;
        while (capacity < json->size + size + 1)
            capacity *= 2;
        char *data = realloc(json->data, capacity);
        if (!data) {
            json->failed = true;
            return false;
        }
        json->data = data;
        json->capacity = capacity;
    }
    return true;
}

void json_raw(Json *json, const void *data, size_t size)
{
    if (!size || !make_room(json, size))
        return;
    memcpy(json->data + json->size, data, size);
    json->size += size;
    json->data[json->size] = '\0';
}

static void put_char(Json *json, char c)
{
    json_raw(json, &c, 1);
}

static void put_comma(Json *json)
{
    if (json->needs_comma)
        put_char(json, ',');
    json->needs_comma = true;
}

void json_open(Json *json, char bracket)
{
    put_comma(json);
    put_char(json, bracket);
    json->needs_comma = false;
}

void json_close(Json *json, char bracket)
{
    put_char(json, bracket);
    json->needs_comma = true;
}

void json_key(Json *json, const char *name)
{
    json_text(json, name);
    put_char(json, ':');
    json->needs_comma = false;
}

// The bytes of the UTF-8 character at `text`; 0: they are none.
static size_t character_size(const u8 *text, size_t size)
{
    static const u32 smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    u32 point = text[0];
    size_t length = point < 0x80 ? 1 : point < 0xc2 ? 0 : point < 0xe0 ? 2 : point < 0xf0 ? 3
                    : point < 0xf5 ? 4 : 0;

    if (length < 2)
        return length;
    if (length > size)
        return 0;
    point &= 0x7fu >> length;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    bool is_surrogate = point >= 0xd800 && point < 0xe000;
    return point < smallest[length] || point > 0x10ffff || is_surrogate ? 0 : length;
}

// Line separators end a line of a script where JSON stands in one.
static bool is_separator(const u8 *text, size_t length)
{
    return length == 3 && text[0] == 0xe2 && text[1] == 0x80 && (text[2] & 0xfe) == 0xa8;
}

static void put_escaped(Json *json, u8 c)
{
    char text[8];
    const char *letter = strchr("\"\"\\\\\nn\tt\rr", c);

    // Every second character of the list is the letter of the one before it.
    if (c && letter && (c == '"' || c == '\\' || c < ' '))
        snprintf(text, sizeof(text), "\\%c", letter[1]);
    else
        snprintf(text, sizeof(text), "\\u%04x", c);
    json_raw(json, text, strlen(text));
}

static bool is_plain(u8 c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<';
}

void json_text_size(Json *json, const char *text, size_t size)
{
    const u8 *bytes = (const u8 *)text;

    put_comma(json);
    put_char(json, '"');
    for (size_t i = 0; i < size && !json->failed;) {
        size_t run = i;
        while (run < size && is_plain(bytes[run]))
            run++;
        json_raw(json, bytes + i, run - i);
        i = run;
        if (i == size)
            break;
        size_t length = character_size(bytes + i, size - i);
        if (length == 0) {
            char hex[8];
            snprintf(hex, sizeof(hex), "\\\\x%02x", bytes[i]);
            json_raw(json, hex, strlen(hex));
        } else if (length == 1) {
            put_escaped(json, bytes[i]);
        } else if (is_separator(bytes + i, length)) {
            json_raw(json, bytes[i + 2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
        } else {
            json_raw(json, bytes + i, length);
        }
        i += length ? length : 1;
    }
    put_char(json, '"');
}

void json_text(Json *json, const char *text)
{
    if (text)
        json_text_size(json, text, strlen(text));
    else
        json_null(json);
}

__attribute__((format(printf, 2, 3))) static void put_format(Json *json, const char *format, ...)
{
    char text[64];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    put_comma(json);
    json_raw(json, text, length > 0 ? (size_t)length : 0);
}

void json_u64(Json *json, u64 value)
{
    char digits[24];
    size_t at = sizeof(digits);

    // Most of an answer is numbers, and printf is ten times as slow.
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put_comma(json);
    json_raw(json, digits + at, sizeof(digits) - at);
}

void json_i64(Json *json, i64 value)
{
    if (value >= 0) {
        json_u64(json, (u64)value);
        return;
    }
    put_comma(json);
    put_char(json, '-');
    json->needs_comma = false;
    json_u64(json, -(u64)value);
}

void json_double(Json *json, double value)
{
    if (isfinite(value))
        put_format(json, "%.10g", value);
    else
        json_null(json);
}

void json_bool(Json *json, bool value)
{
    put_format(json, "%s", value ? "true" : "false");
}

void json_null(Json *json)
{
    put_format(json, "null");
}

void json_address(Json *json, u64 address)
{
    put_format(json, "\"0x%llx\"", (unsigned long long)address);
}

void json_value(Json *json, const char *text, size_t size)
{
    put_comma(json);
    json_raw(json, text, size);
}

void json_key_text(Json *json, const char *name, const char *text)
{
    json_key(json, name);
    json_text(json, text);
}

void json_key_u64(Json *json, const char *name, u64 value)
{
    json_key(json, name);
    json_u64(json, value);
}

void json_key_i64(Json *json, const char *name, i64 value)
{
    json_key(json, name);
    json_i64(json, value);
}

void json_key_bool(Json *json, const char *name, bool value)
{
    json_key(json, name);
    json_bool(json, value);
}

void json_key_null(Json *json, const char *name)
{
    json_key(json, name);
    json_null(json);
}

void json_key_address(Json *json, const char *name, u64 address)
{
    json_key(json, name);
    json_address(json, address);
}

void json_key_open(Json *json, const char *name, char bracket)
{
    json_key(json, name);
    json_open(json, bracket);
}

void json_key_u64s(Json *json, const char *name, const u64 *values, size_t count)
{
    json_key_open(json, name, '[');
    for (size_t i = 0; i < count; i++)
        json_u64(json, values[i]);
    json_close(json, ']');
}
