// SPDX-License-Identifier: MIT
//
// A pattern is pieces between stars. The first piece is anchored at the start,
// the last at the end, and each of the others may be taken where it is found
// first: what follows has then the most room, so nothing is ever tried twice.
#include "monitor/suppress/glob.h"

#include <string.h>

static bool piece_equal(const char *piece, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (piece[i] != text[i] && piece[i] != '?')
            return false;
    }
    return true;
}

static const char *piece_find(const char *piece, size_t size, const char *text, size_t text_size)
{
    if (size > text_size)
        return NULL;
    if (!memchr(piece, '?', size))
        return memmem(text, text_size, piece, size);
    for (size_t at = 0; at <= text_size - size; at++) {
        if (piece_equal(piece, text + at, size))
            return text + at;
    }
    return NULL;
}

static size_t piece_size(const char *pattern, size_t size)
{
    const char *star = memchr(pattern, '*', size);

    return star ? (size_t)(star - pattern) : size;
}

bool glob_match(const char *pattern, size_t pattern_size, const char *text, size_t text_size)
{
    const char *pattern_end = pattern + pattern_size;
    const char *text_end = text + text_size;
    size_t size = piece_size(pattern, pattern_size);

    if (size > text_size || !piece_equal(pattern, text, size))
        return false;
    if (size == pattern_size)
        return size == text_size;
    text += size;
    pattern += size;

    for (;;) {
        while (pattern < pattern_end && *pattern == '*')
            pattern++;
        if (pattern == pattern_end)
            return true;
        size = piece_size(pattern, (size_t)(pattern_end - pattern));
        if (pattern + size == pattern_end)
            return size <= (size_t)(text_end - text) &&
                   piece_equal(pattern, text_end - size, size);

        const char *found = piece_find(pattern, size, text, (size_t)(text_end - text));
        if (!found)
            return false;
        text = found + size;
        pattern += size;
    }
}

bool glob_is_literal(const char *pattern, size_t size)
{
    return !memchr(pattern, '*', size) && !memchr(pattern, '?', size);
}
