// SPDX-License-Identifier: MIT
//
// JSON into a Dom.
#include <string.h>

#include "inspect/dom/dom.h"

enum { DEPTH_MAX = 64 };

typedef struct Reader {
    Arena *arena;
    const char *at, *end;
    bool failed; // nothing more is read
} Reader;

static void skip_blanks(Reader *reader)
{
    while (reader->at < reader->end && *reader->at && strchr(" \t\r\n", *reader->at))
        reader->at++;
}

static Dom *new_dom(Reader *reader, DomKind kind)
{
    Dom *dom = arena_alloc(reader->arena, sizeof(*dom), 8);

    if (!dom) {
        reader->failed = true;
        return NULL;
    }
    dom->kind = kind;
    dom->text = "";
    return dom;
}

static char *put_utf8(char *out, u32 point)
{
    if (point < 0x80) {
        *out++ = (char)(point ? point : ' ');
    } else if (point < 0x800) {
        *out++ = (char)(0xc0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *out++ = (char)(0xe0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    } else {
        *out++ = (char)(0xf0 | point >> 18);
        *out++ = (char)(0x80 | (point >> 12 & 0x3f));
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    }
    return out;
}

// Four hexadecimal digits at `at`; U32_MAX: there are none.
static u32 read_unit(const Reader *reader, const char *at)
{
    u32 unit = 0;

    if (reader->end - at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return UINT32_MAX;
        unit = unit * 16 + (u32)(digit - digits) % 16;
    }
    return unit;
}

// The escape after the backslash at reader->at.
static char *read_escape(Reader *reader, char *out)
{
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char letter = reader->at + 1 < reader->end ? reader->at[1] : '\0';
    const char *known = letter && letter != 'u' ? strchr(letters, letter) : NULL;

    reader->at += 2;
    if (letter != 'u') {
        *out++ = known ? known[1] : '?';
        return out;
    }
    u32 point = read_unit(reader, reader->at);
    if (point == UINT32_MAX) {
        reader->failed = true;
        return out;
    }
    reader->at += 4;
    if (point >= 0xd800 && point < 0xdc00 && reader->end - reader->at >= 6 &&
        reader->at[0] == '\\' && reader->at[1] == 'u') {
        u32 low = read_unit(reader, reader->at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
            reader->at += 6;
        }
    }
    return put_utf8(out, point >= 0xd800 && point < 0xe000 ? 0xfffd : point);
}

// At the opening quote. NULL: it has no end.
static char *read_string(Reader *reader)
{
    const char *stop = reader->at + 1;

    while (stop < reader->end && *stop != '"')
        stop += *stop == '\\' && stop + 1 < reader->end ? 2 : 1;
    char *text = stop < reader->end
                     ? arena_alloc(reader->arena, (size_t)(stop - reader->at) + 4, 1)
                     : NULL;
    if (!text) {
        reader->failed = true;
        return NULL;
    }
    char *out = text;
    // A zero byte ends the text for whoever reads it, and nothing worse.
    for (reader->at++; reader->at < stop && !reader->failed;) {
        if (*reader->at == '\\')
            out = read_escape(reader, out);
        else
            *out++ = *reader->at++;
    }
    *out = '\0';
    reader->at = stop + 1;
    return text;
}

static Dom *read_value(Reader *reader, int depth);

static void append(Dom *parent, Dom *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

static char *read_name(Reader *reader)
{
    skip_blanks(reader);
    if (reader->at >= reader->end || *reader->at != '"') {
        reader->failed = true;
        return NULL;
    }
    char *name = read_string(reader);
    skip_blanks(reader);
    if (reader->at < reader->end && *reader->at == ':')
        reader->at++;
    else
        reader->failed = true;
    return name;
}

static void read_items(Reader *reader, Dom *parent, int depth)
{
    char close = parent->kind == DOM_OBJECT ? '}' : ']';

    for (bool is_first = true;; is_first = false) {
        skip_blanks(reader);
        if (reader->at < reader->end && *reader->at == close) {
            reader->at++;
            parent->is_whole = true;
            return;
        }
        if (!is_first) {
            if (reader->at >= reader->end || *reader->at != ',') {
                reader->failed = true;
                return;
            }
            reader->at++;
        }
        char *name = parent->kind == DOM_OBJECT ? read_name(reader) : NULL;
        Dom *child = reader->failed ? NULL : read_value(reader, depth + 1);
        if (child) {
            child->name = name;
            append(parent, child);
        }
        if (reader->failed)
            return;
    }
}

static Dom *read_word(Reader *reader)
{
    const char *start = reader->at;

    while (reader->at < reader->end && *reader->at && !strchr(" \t\r\n,]}:\"[{", *reader->at))
        reader->at++;
    size_t size = (size_t)(reader->at - start);
    Dom *dom = size ? new_dom(reader, DOM_NUMBER) : NULL;
    char *text = dom ? arena_alloc(reader->arena, size + 1, 1) : NULL;
    if (!text) {
        reader->failed = true;
        return NULL;
    }
    memcpy(text, start, size);
    dom->text = text;
    dom->is_whole = true;
    if (strcmp(text, "null") == 0)
        dom->kind = DOM_NULL;
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        dom->kind = DOM_BOOL;
    return dom;
}

static Dom *read_value(Reader *reader, int depth)
{
    skip_blanks(reader);
    if (reader->at >= reader->end || depth > DEPTH_MAX) {
        reader->failed = true;
        return NULL;
    }
    char c = *reader->at;
    if (c == '{' || c == '[') {
        Dom *dom = new_dom(reader, c == '{' ? DOM_OBJECT : DOM_LIST);
        reader->at++;
        if (dom)
            read_items(reader, dom, depth);
        return dom;
    }
    if (c != '"')
        return read_word(reader);
    Dom *dom = new_dom(reader, DOM_TEXT);
    char *text = dom ? read_string(reader) : NULL;
    if (!text)
        return NULL;
    dom->text = text;
    dom->is_whole = true;
    return dom;
}

Dom *dom_read_json(Arena *arena, const char *text, size_t size, size_t *ret_used)
{
    Reader reader = {arena, text, text + size, false};
    Dom *dom = read_value(&reader, 0);

    skip_blanks(&reader);
    *ret_used = (size_t)(reader.at - text);
    return dom;
}
