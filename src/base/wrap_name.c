// SPDX-License-Identifier: MIT
//
// See wrap_name.h.
#include "base/wrap_name.h"

#include <string.h>

// What the letter behind a Z stands for; 0: nothing.
static char decode_letter(char code)
{
    switch (code) {
    case 'a': return '*';
    case 'c': return ':';
    case 'd': return '.';
    case 'h': return '-';
    case 'p': return '+';
    case 's': return ' ';
    case 'u': return '_';
    case 'A': return '@';
    case 'D': return '$';
    case 'L': return '(';
    case 'P': return '%';
    case 'R': return ')';
    case 'S': return '/';
    case 'Z': return 'Z';
    default: return '\0';
    }
}

// Undoes the encoding of [from, end). Returns the end of the text in `to`, or NULL.
static char *decode(const char *from, const char *end, char *to)
{
    for (; from < end; from++) {
        char plain = *from;
        if (plain == 'Z')
            plain = ++from < end ? decode_letter(*from) : '\0';
        if (!plain)
            return NULL;
        *to++ = plain;
    }
    *to++ = '\0';
    return to;
}

bool wrap_name_decode(const char *symbol, char buffer[WRAP_NAME_MAX], WrapName *ret_name)
{
    enum { PREFIX = 3, TAG = 5, ENCODING = 3 };
    size_t length;
    if (!wrap_name_begins(symbol) || (length = strlen(symbol)) >= WRAP_NAME_MAX)
        return false;
    char kind = symbol[PREFIX];
    const char *tag = symbol + PREFIX + 1;
    if ((kind != 'w' && kind != 'r') || strspn(tag, "0123456789") != TAG)
        return false;
    const char *encoding = tag + TAG;
    bool is_encoded = strncmp(encoding, "ZZ_", ENCODING) == 0;
    if (!is_encoded && strncmp(encoding, "ZU_", ENCODING) != 0)
        return false;
    const char *soname = encoding + ENCODING, *separator = strchr(soname, '_');
    char *function = separator ? decode(soname, separator, buffer) : NULL;
    if (!function || !separator[1])
        return false;
    const char *end = symbol + length;
    if (!is_encoded)
        memcpy(function, separator + 1, (size_t)(end - separator));
    else if (!decode(separator + 1, end, function))
        return false;
    *ret_name = (WrapName){kind == 'w', buffer, function};
    return true;
}
