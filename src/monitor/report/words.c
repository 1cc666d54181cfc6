// SPDX-License-Identifier: MIT
//
// From a record's numbers to a sentence: the interpreter of messages.def. The
// formats are ours, the numbers and the text are the client's; a value that a
// format wants and the record lacks is shown as "?".
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/report/buffer.h"
#include "monitor/report/report_internal.h"

static const KindWords kinds[KIND_COUNT] = {
#define KIND(NAME, tool_, xml_, suppression_, id_)                                                 \
    [KIND_##NAME].tool = tool_, [KIND_##NAME].xml = xml_,                                          \
    [KIND_##NAME].suppression = suppression_, [KIND_##NAME].id = id_,
#include "wire/kinds.def"
#define MESSAGE(NAME, level_, title_, format)                                                      \
    [KIND_##NAME].level = level_, [KIND_##NAME].title = title_,
#include "monitor/report/messages.def"
};

static const char *const headlines[KIND_COUNT] = {
#define MESSAGE(NAME, level, title, format) [KIND_##NAME] = format,
#include "monitor/report/messages.def"
};

static const char *const part_ids[] = {
#define PART(NAME, id, values) [PART_##NAME] = id,
#include "wire/parts.def"
};

static const char *const part_formats[PART_COUNT] = {
#define WORDS(NAME, format) [PART_##NAME] = format,
#include "monitor/report/messages.def"
};

const KindWords *report_kind(u32 kind)
{
    return kind < ARRAY_LEN(kinds) ? &kinds[kind] : NULL;
}

const char *report_part_id(u32 part)
{
    return part < PART_COUNT ? part_ids[part] : "unknown";
}

typedef struct Filler {
    Buffer *out;
    const u64 *values;
    size_t count;
    const char *text; // "" if there is none
} Filler;

static void put_value(const Filler *filler, char form, size_t index)
{
    if (index >= filler->count) {
        buffer_putc(filler->out, '?');
        return;
    }
    u64 value = filler->values[index];
    switch (form) {
    case 'v':
        buffer_printf(filler->out, "%llu", (unsigned long long)value);
        break;
    case 'i':
        buffer_printf(filler->out, "%lld", (long long)value);
        break;
    case 'x':
        buffer_printf(filler->out, "0x%llx", (unsigned long long)value);
        break;
    case 'X':
        buffer_printf(filler->out, "0x%llX", (unsigned long long)value);
        break;
    case 'c':
        buffer_put_commas(filler->out, value);
        break;
    case 'p':
        buffer_putc(filler->out, value & PROT_READ ? 'r' : '-');
        buffer_putc(filler->out, value & PROT_WRITE ? 'w' : '-');
        buffer_putc(filler->out, value & PROT_EXEC ? 'x' : '-');
        break;
    default:
        buffer_putc(filler->out, '?');
        break;
    }
}

// %[0|a|b|c]: `format` stands behind the '['. Returns what follows the ']'.
static const char *put_choice(const Filler *filler, const char *format)
{
    size_t index = (size_t)(*format - '0'), at = 0;
    u64 wanted = index < filler->count ? filler->values[index] : UINT64_MAX;
    const char *end = strchr(format, ']');
    const char *word = strchr(format, '|') + 1;

    for (;;) {
        size_t length = strcspn(word, "|]");
        if (at == wanted) {
            buffer_put(filler->out, word, length);
            break;
        }
        word += length;
        if (*word == ']') {
            buffer_putc(filler->out, '?');
            break;
        }
        word++;
        at++;
    }
    return end + 1;
}

static bool condition_holds(const Filler *filler, char kind, char subject)
{
    bool holds;

    if (subject == 't') {
        holds = filler->text[0] != 0;
    } else {
        size_t index = (size_t)(subject - '0');
        holds = index < filler->count && filler->values[index] != 0;
    }
    return holds == (kind == '?');
}

// Conditions do not nest: `inside` only tells what a '}' means.
static void fill(const Filler *filler, const char *format)
{
    bool inside = false;

    while (*format) {
        if (inside && *format == '}') {
            inside = false;
            format++;
            continue;
        }
        if (*format != '%') {
            buffer_putc(filler->out, *format++);
            continue;
        }
        char form = *++format;
        size_t open = strcspn(filler->text, "(");
        switch (form) {
        case 't':
            buffer_puts(filler->out, filler->text);
            format++;
            break;
        case 'f':
            buffer_put(filler->out, filler->text, open);
            format++;
            break;
        case 'a':
            if (filler->text[open])
                buffer_put(filler->out, filler->text + open + 1,
                           strcspn(filler->text + open + 1, ")"));
            format++;
            break;
        case '[':
            format = put_choice(filler, format + 1);
            break;
        case '?':
        case '!':
            inside = condition_holds(filler, form, format[1]);
            format = inside ? format + 3 : strchr(format, '}') + 1;
            break;
        default:
            put_value(filler, form, (size_t)(format[1] - '0'));
            format += 2;
            break;
        }
    }
}

static size_t put_sentence(const char *format, const u64 *values, size_t count, const char *text,
                           char *buffer, size_t buffer_size)
{
    Buffer out = {0};
    Filler filler = {&out, values, count, text ? text : ""};

    if (buffer_size == 0)
        return 0;
    fill(&filler, format);
    size_t size = min_u64(out.size, buffer_size - 1);
    if (size)
        memcpy(buffer, out.data, size);
    buffer[size] = 0;
    buffer_free(&out);
    return size;
}

size_t report_headline(u32 kind, const u64 *values, size_t count, const char *text, char *buffer,
                       size_t buffer_size)
{
    const char *format = kind < ARRAY_LEN(kinds) ? headlines[kind] : NULL;
    u64 number = kind;

    if (!format)
        return put_sentence("Finding of an unknown kind (%v0)", &number, 1, NULL, buffer,
                            buffer_size);
    return put_sentence(format, values, count, text, buffer, buffer_size);
}

size_t report_part_text(u32 part, const u64 *values, size_t count, const char *text, char *buffer,
                        size_t buffer_size)
{
    u64 number = part;

    if (part >= PART_COUNT)
        return put_sentence("Something of an unknown kind (%v0)", &number, 1, NULL, buffer,
                            buffer_size);
    return put_sentence(part_formats[part], values, count, text, buffer, buffer_size);
}
