// SPDX-License-Identifier: MIT
//
// XML into a Dom, as far as reports need it: elements and text. Attributes, comments and
// processing instructions are passed over; entities are the five and numbers. There are no
// definitions, so none can expand without end.
#include <stdlib.h>
#include <string.h>

#include "inspect/dom/dom.h"

enum { DEPTH_MAX = 64 };

typedef struct Open {
    Dom *dom;
    char *text; // what it has so far, in memory of its own
    size_t size, capacity;
} Open;

typedef struct XmlReader {
    Arena *arena;
    const char *at, *end;
    Open stack[DEPTH_MAX];
    int depth;
    Dom *root;
    bool failed;
} XmlReader;

static bool begins(const XmlReader *reader, const char *word)
{
    size_t size = strlen(word);

    return (size_t)(reader->end - reader->at) >= size && memcmp(reader->at, word, size) == 0;
}

// Where the word is found, or the end.
static const char *find(const XmlReader *reader, const char *word)
{
    const char *found =
        memmem(reader->at, (size_t)(reader->end - reader->at), word, strlen(word));

    return found ? found : reader->end;
}

static void skip_past(XmlReader *reader, const char *word)
{
    const char *found = find(reader, word);

    reader->at = found < reader->end ? found + strlen(word) : reader->end;
}

static void put_text(XmlReader *reader, const char *text, size_t size)
{
    Open *open = reader->depth ? &reader->stack[reader->depth - 1] : NULL;

    if (!open || !size)
        return;
    if (open->size + size + 1 > open->capacity) {
        size_t capacity = open->capacity ? 2 * open->capacity : 64;
        while (capacity < open->size + size + 1)
            capacity *= 2;
        char *grown = realloc(open->text, capacity);
        if (!grown) {
            reader->failed = true;
            return;
        }
        open->text = grown;
        open->capacity = capacity;
    }
    memcpy(open->text + open->size, text, size);
    open->size += size;
}

// The character of "&…;" at reader->at, which is passed.
static void put_entity(XmlReader *reader)
{
    static const struct {
        const char *name, *text;
    } known[] = {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}, {"&quot;", "\""}, {"&apos;", "'"}};
    char *end;

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (begins(reader, known[i].name)) {
            put_text(reader, known[i].text, 1);
            reader->at += strlen(known[i].name);
            return;
        }
    }
    if (begins(reader, "&#") && reader->end - reader->at > 4) {
        bool is_hex = reader->at[2] == 'x';
        char digits[12] = {0};
        size_t room = (size_t)(reader->end - reader->at) - 2 - is_hex;
        memcpy(digits, reader->at + 2 + is_hex, room < 10 ? room : 10);
        unsigned long code = strtoul(digits, &end, is_hex ? 16 : 10);
        if (*end == ';' && end != digits && code > 0 && code < 0x80) {
            char c = (char)code;
            put_text(reader, &c, 1);
            reader->at += 3 + is_hex + (end - digits);
            return;
        }
    }
    put_text(reader, reader->at++, 1);
}

static void close_element(XmlReader *reader)
{
    Open *open = &reader->stack[--reader->depth];
    const char *start = open->text ? open->text : "";
    size_t size = open->size;

    // Blanks around are the layout of the file.
    while (size && strchr(" \t\r\n", *start) && *start) {
        start++;
        size--;
    }
    while (size && start[size - 1] && strchr(" \t\r\n", start[size - 1]))
        size--;
    char *text = arena_alloc(reader->arena, size + 1, 1);
    if (text) {
        memcpy(text, start, size);
        open->dom->text = text;
    } else {
        reader->failed = true;
    }
    free(open->text);
    *open = (Open){0};
}

static void open_element(XmlReader *reader, const char *name, size_t size)
{
    Dom *dom = arena_alloc(reader->arena, sizeof(*dom), 8);
    char *copy = dom ? arena_alloc(reader->arena, size + 1, 1) : NULL;

    if (!copy || reader->depth == DEPTH_MAX || (reader->depth == 0 && reader->root)) {
        reader->failed = true;
        return;
    }
    memcpy(copy, name, size);
    *dom = (Dom){.kind = DOM_OBJECT, .name = copy, .text = ""};
    if (reader->depth) {
        Dom *parent = reader->stack[reader->depth - 1].dom;
        if (parent->last)
            parent->last->next = dom;
        else
            parent->first = dom;
        parent->last = dom;
    } else {
        reader->root = dom;
    }
    reader->stack[reader->depth++] = (Open){.dom = dom};
}

// At '<'.
static void read_tag(XmlReader *reader)
{
    const char *stop = find(reader, ">");

    if (stop == reader->end) {
        reader->at = reader->end;
        return;
    }
    bool is_close = reader->at[1] == '/';
    bool is_empty = stop > reader->at + 1 && stop[-1] == '/' && !is_close;
    const char *name = reader->at + 1 + is_close;
    size_t size = 0;
    while (name + size < stop && !strchr(" \t\r\n/>", name[size]) && name[size])
        size++;
    reader->at = stop + 1;
    if (!is_close) {
        open_element(reader, name, size);
        if (is_empty && !reader->failed) {
            reader->stack[reader->depth - 1].dom->is_whole = true;
            close_element(reader);
        }
        return;
    }
    const Dom *open = reader->depth ? reader->stack[reader->depth - 1].dom : NULL;
    if (!open || strlen(open->name) != size || memcmp(open->name, name, size) != 0) {
        reader->failed = true;
        return;
    }
    reader->stack[reader->depth - 1].dom->is_whole = true;
    close_element(reader);
}

static void read_text(XmlReader *reader)
{
    const char *stop = reader->at;

    while (stop < reader->end && *stop != '<' && *stop != '&')
        stop++;
    put_text(reader, reader->at, (size_t)(stop - reader->at));
    reader->at = stop;
    if (reader->at < reader->end && *reader->at == '&')
        put_entity(reader);
}

static void read_cdata(XmlReader *reader)
{
    reader->at += strlen("<![CDATA[");
    const char *stop = find(reader, "]]>");
    put_text(reader, reader->at, (size_t)(stop - reader->at));
    reader->at = stop < reader->end ? stop + 3 : stop;
}

Dom *dom_read_xml(Arena *arena, const char *text, size_t size)
{
    XmlReader reader = {.arena = arena, .at = text, .end = text + size};

    while (reader.at < reader.end && !reader.failed) {
        if (begins(&reader, "<![CDATA["))
            read_cdata(&reader);
        else if (begins(&reader, "<?"))
            skip_past(&reader, "?>");
        else if (begins(&reader, "<!--"))
            skip_past(&reader, "-->");
        else if (begins(&reader, "<!"))
            skip_past(&reader, ">");
        else if (*reader.at == '<')
            read_tag(&reader);
        else
            read_text(&reader);
    }
    while (reader.depth)
        close_element(&reader);
    return reader.root;
}
