// SPDX-License-Identifier: MIT
//
// The text of source files that recordings and reports name. Those who made a recording may
// have named anything: only regular files of a moderate size whose names end as sources do
// are read, so that no page or export ever shows a key or a password.
#ifndef MUNINN_INSPECT_HTTP_SOURCE_TEXT_H
#define MUNINN_INSPECT_HTTP_SOURCE_TEXT_H

#include "inspect/http/json.h"

typedef struct SourceText {
    char *data;
    size_t size;
    u64 changed_ns; // wall clock
} SourceText;

// False: *ret_why is a sentence.
bool source_read(const char *directory, const char *file, SourceText *ret_text,
                 const char **ret_why);
bool source_is_readable(const char *directory, const char *file);
void source_free(SourceText *text);
// Lines [first, first + count) from 1 on, as an array of strings.
void json_source_lines(Json *out, const SourceText *text, u32 first, u32 count);

#endif
