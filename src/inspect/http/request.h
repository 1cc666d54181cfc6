// SPDX-License-Identifier: MIT
//
// A request as endpoints see it: a path and parameters, already decoded. It comes from the
// network or, for an export, from a list. What is wrong with a parameter is noted once, in
// words, and the endpoint goes on with the default: whoever asked sees the words.
#ifndef MUNINN_INSPECT_HTTP_REQUEST_H
#define MUNINN_INSPECT_HTTP_REQUEST_H

#include "base/types.h"

enum {
    REQUEST_PARAMS_MAX = 64,
    REQUEST_TEXT_MAX = 24 * 1024, // of all names and values together
};

typedef struct Param {
    const char *name, *value;
} Param;

typedef struct Request {
    const char *path;
    Param params[REQUEST_PARAMS_MAX]; // sorted by name; of equal names the first counts
    size_t param_count;
    char error[160]; // "": everything was understood
    size_t text_size;
    char text[REQUEST_TEXT_MAX]; // what path and params point into
} Request;

// Adds a parameter; an empty one is as one that is not there. False: too many, too long, or
// bytes that no parameter has (zero).
bool request_add(Request *request, const char *name, const char *value);
bool request_set_path(Request *request, const char *path);
// "/api/tree?bottom_up=1&metric=live", percent-encoded.
bool request_parse(Request *request, const char *url);

// The parameter, or NULL.
const char *request_text(const Request *request, const char *name);
u64 request_u64(Request *request, const char *name, u64 fallback, u64 max);
u64 request_address(Request *request, const char *name, u64 fallback); // hexadecimal
bool request_flag(Request *request, const char *name);
// The index of the value in a list of `count` words; absent: `fallback`.
u32 request_choice(Request *request, const char *name, const char *const *words, u32 count,
                   u32 fallback);
// Notes the first thing that is wrong.
void request_blame(Request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// All of it as text in which equal requests are equal; `ret_key` gets at most `room` bytes,
// longer ones end in a hash.
void request_key(const Request *request, char *ret_key, size_t room);

#endif
