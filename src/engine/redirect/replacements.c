// SPDX-License-Identifier: MIT
//
// Functions that a program brings along to be run in place of others under a tool, as valgrind.h's
// I_REPLACE_SONAME_FNNAME_ZU names them: _vgr, a tag of five digits, ZU or ZZ, the soname of the
// object, the name. PHP compares strings so. Where the object is the one that has the replacement,
// a call of the function goes there.
#include <string.h>

#include "engine/redirect/redirect_internal.h"

enum { NAME_MAX_BYTES = 128, REPLACEMENTS_MAX = 64 };

typedef struct Replacement {
    char name[NAME_MAX_BYTES];
    GuestAddr target;
} Replacement;

static Replacement found[REPLACEMENTS_MAX]; // of the file being looked at; engine lock
static u32 found_count;

// What the letter behind a Z stands for; 0: nothing.
static char decode_letter(char code)
{
    switch (code) {
    case 'a': return '*';
    case 'c': return ':';
    case 'd': return '.';
    case 'h': return '#';
    case 'm': return '-';
    case 'p': return '+';
    case 's': return ' ';
    case 'u': return '_';
    case 'A': return '@';
    case 'D': return '$';
    case 'L': return '(';
    case 'R': return ')';
    case 'Z': return 'Z';
    default: return '\0';
    }
}

// Undoes the encoding of [from, end). False: it is none, or too long.
static bool decode(const char *from, const char *end, char ret[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (; from < end && n < NAME_MAX_BYTES - 1; from++) {
        char plain = *from;
        if (plain == 'Z')
            plain = ++from < end ? decode_letter(*from) : '\0';
        if (!plain)
            return false;
        ret[n++] = plain;
    }
    ret[n] = '\0';
    return from == end;
}

void replacements_begin(void)
{
    found_count = 0;
}

void replacements_note(const char *name, const char *soname, GuestAddr target)
{
    static const char prefix[] = "_vgr";
    enum { DIGITS = 5, KIND = 3 };
    char object[NAME_MAX_BYTES];
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || found_count == REPLACEMENTS_MAX)
        return;
    const char *kind = name + sizeof(prefix) - 1;
    if (strspn(kind, "0123456789") != DIGITS)
        return;
    kind += DIGITS;
    bool encoded = strncmp(kind, "ZZ_", KIND) == 0;
    const char *end = strncmp(kind, "ZU_", KIND) == 0 || encoded ? strchr(kind + KIND, '_') : NULL;
    if (!end || !decode(kind + KIND, end, object))
        return;
    // An object without a name is NONE.
    if (strcmp(object, soname[0] ? soname : "NONE") != 0)
        return;
    Replacement *r = &found[found_count];
    const char *function = end + 1;
    size_t length = strlen(function);
    if (encoded ? !decode(function, function + length, r->name) : length >= NAME_MAX_BYTES)
        return;
    if (!encoded)
        memcpy(r->name, function, length + 1);
    r->target = target;
    found_count++;
}

void replacements_apply(const char *name, GuestAddr pc)
{
    for (u32 i = 0; i < found_count; i++) {
        if (strcmp(found[i].name, name) == 0 && found[i].target != pc)
            hooks_add_jump(pc, found[i].target);
    }
}

bool replacements_any(void)
{
    return found_count > 0;
}
