// SPDX-License-Identifier: MIT
//
// JSON that grows: commas come of themselves. Text of programs (names, paths, source
// lines) is hostile and may be any bytes: it is made valid UTF-8 here and nowhere else, and
// '<' is written as \u003c, so that an answer can stand inside a page as it is.
#ifndef MUNINN_INSPECT_HTTP_JSON_H
#define MUNINN_INSPECT_HTTP_JSON_H

#include "base/types.h"

typedef struct Json {
    char *data; // terminated once something was put
    size_t size, capacity;
    bool failed;      // memory ran out, or JSON_MAX_BYTES: the rest was dropped
    bool needs_comma; // before the next value or key
} Json;

enum { JSON_MAX_BYTES = 64 << 20 };

void json_free(Json *json);
// Bytes as they are.
void json_raw(Json *json, const void *data, size_t size);

void json_open(Json *json, char bracket);  // '{' or '['
void json_close(Json *json, char bracket); // '}' or ']'
void json_key(Json *json, const char *name);

void json_text(Json *json, const char *text); // NULL: null
void json_text_size(Json *json, const char *text, size_t size);
void json_u64(Json *json, u64 value);
void json_i64(Json *json, i64 value);
void json_double(Json *json, double value);
void json_bool(Json *json, bool value);
void json_null(Json *json);
void json_address(Json *json, u64 address); // "0x4a48044"
// A whole value that is JSON already.
void json_value(Json *json, const char *text, size_t size);

// A key and its value.
void json_key_text(Json *json, const char *name, const char *text);
void json_key_u64(Json *json, const char *name, u64 value);
void json_key_i64(Json *json, const char *name, i64 value);
void json_key_bool(Json *json, const char *name, bool value);
void json_key_null(Json *json, const char *name);
void json_key_address(Json *json, const char *name, u64 address);
void json_key_open(Json *json, const char *name, char bracket);
void json_key_u64s(Json *json, const char *name, const u64 *values, size_t count);

#endif
