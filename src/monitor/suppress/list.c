// SPDX-License-Identifier: MIT
//
// The lists of used and unused entries: the two texts, and the pieces of the XML
// and JSON reports.
#include <stdlib.h>

#include "monitor/suppress/entry.h"

// "12,400"
static void write_number(u64 number, FILE *out)
{
    if (number >= 1000) {
        write_number(number / 1000, out);
        fprintf(out, ",%03u", (unsigned)(number % 1000));
    } else {
        fprintf(out, "%u", (unsigned)number);
    }
}

static int compare_use(const void *left, const void *right)
{
    const Entry *a = *(Entry *const *)left, *b = *(Entry *const *)right;

    if (a->shown.used != b->shown.used)
        return a->shown.used > b->shown.used ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void write_used(const Suppression *each, const char *prefix, FILE *out)
{
    fprintf(out, "%sused_suppression: %6llu %s %s:%u", prefix, (unsigned long long)each->used,
            each->name, each->file, each->line);
    if (each->leaked_blocks) {
        fputs(" suppressed: ", out);
        write_number(each->leaked_bytes, out);
        fputs(" bytes in ", out);
        write_number(each->leaked_blocks, out);
        fputs(" blocks", out);
    }
    fputc('\n', out);
}

// Control characters are no XML and bytes that are no UTF-8 may be anywhere in a file;
// both become ?.
static size_t utf8_size(const unsigned char *text)
{
    size_t size = text[0] < 0x80                      ? 1
                  : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                  : (text[0] & 0xf0) == 0xe0          ? 3
                  : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                      : 0;

    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    // Overlong forms, surrogates, what lies behind the last code point, non-characters.
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90) ||
        (text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe))
        return 0;
    return size;
}

typedef const char *EscapeFunction(char c);

static const char *xml_escape(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    default:
        return NULL;
    }
}

static const char *json_escape(char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

static void write_escaped(const char *text, EscapeFunction *escape, FILE *out)
{
    while (*text) {
        size_t size = utf8_size((const unsigned char *)text);
        const char *escaped = escape(*text);

        if (escaped)
            fputs(escaped, out);
        else if (size == 0 || (unsigned char)*text < ' ' || *text == 0x7f)
            fputc('?', out);
        else
            fwrite(text, 1, size, out);
        text += size ? size : 1;
    }
}

static void write_xml(const Suppression *each, FILE *out)
{
    fprintf(out, "  <pair>\n    <count>%llu</count>\n    <name>", (unsigned long long)each->used);
    write_escaped(each->name, xml_escape, out);
    fputs("</name>\n  </pair>\n", out);
}

static void write_json(const Suppression *each, bool is_first, FILE *out)
{
    fputs(is_first ? "{\"name\":\"" : ",{\"name\":\"", out);
    write_escaped(each->name, json_escape, out);
    fputs("\",\"file\":\"", out);
    write_escaped(each->file, json_escape, out);
    fprintf(out, "\",\"line\":%u,\"used\":%llu,\"leaked_bytes\":%llu,\"leaked_blocks\":%llu}",
            each->line, (unsigned long long)each->used, (unsigned long long)each->leaked_bytes,
            (unsigned long long)each->leaked_blocks);
}

static void write_one(const Suppression *each, SuppressList list, const char *prefix, bool is_first,
                      FILE *out)
{
    if (list == SUPPRESS_LIST_JSON)
        write_json(each, is_first, out);
    else if (list == SUPPRESS_LIST_XML && each->used)
        write_xml(each, out);
    else if (list == SUPPRESS_LIST_USED && each->used)
        write_used(each, prefix, out);
    else if (list == SUPPRESS_LIST_UNUSED && !each->used)
        fprintf(out, "%sunused_suppression: %s %s:%u\n", prefix, each->name, each->file,
                each->line);
}

static const struct {
    const char *before, *after;
} frame_of_list[] = {
    [SUPPRESS_LIST_USED] = { "", "" },
    [SUPPRESS_LIST_UNUSED] = { "", "" },
    [SUPPRESS_LIST_XML] = { "<suppcounts>\n", "</suppcounts>\n" },
    [SUPPRESS_LIST_JSON] = { "[", "]" },
};

void suppress_write_list(const SuppressSet *set, SuppressList list, const char *prefix, FILE *out)
{
    size_t count = set->entries.count;
    const Entry **order = malloc((count + 1) * sizeof(*order));

    fputs(frame_of_list[list].before, out);
    for (size_t i = 0; order && i < count; i++)
        order[i] = *(Entry *const *)vec_at(&set->entries, i);
    // By use, where that is what the list is about.
    if (order && count && (list == SUPPRESS_LIST_USED || list == SUPPRESS_LIST_XML))
        qsort(order, count, sizeof(*order), compare_use);
    for (size_t i = 0; order && i < count; i++)
        write_one(&order[i]->shown, list, prefix, i == 0, out);
    fputs(frame_of_list[list].after, out);
    free(order);
}
