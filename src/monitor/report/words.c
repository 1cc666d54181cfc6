// SPDX-License-Identifier: MIT
//
// From the fields of a finding to its words: the interpreter of the templates in wire/findings.def
// and of those that a tool brings. Templates may come over the wire and be anything: what is no
// template in them stands as it is, and a field that there is not is shown as "?".
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/report/buffer.h"
#include "monitor/report/report_internal.h"

enum { DEPTH_MAX = 4 }; // of braces in braces

typedef struct Filler {
    Buffer *out;
    const FieldValues *values;
    size_t limit; // nobody reads more
} Filler;

// A piece of a template.
typedef struct Piece {
    const char *at, *end;
} Piece;

typedef struct Field {
    const FieldDescription *description; // NULL: there is none of the name
    bool is_known;                       // its value has come
    u64 word;
    const char *text; // of a text; never NULL
} Field;

static Field find_field(const FieldValues *values, Piece name)
{
    size_t size = (size_t)(name.end - name.at);
    Field field = {.text = ""};

    for (u32 i = 0; i < values->shape->count; i++) {
        const FieldDescription *row = &values->shape->fields[i];
        if (strncmp(row->name, name.at, size) != 0 || row->name[size] != 0)
            continue;
        field.description = row;
        field.is_known = i < values->count;
        field.word = field.is_known ? values->any.words[i] : 0;
        if (row->type == FIELD_TEXT && field.word)
            field.text = (const char *)field.word;
        break;
    }
    return field;
}

static bool is_set(const Field *field)
{
    bool is_text = field->description && field->description->type == FIELD_TEXT;
    return is_text ? field->text[0] != 0 : field->word != 0;
}

// ------------------------------------------------------------------------- values

static Piece whole(const char *text)
{
    return (Piece){text, text + strlen(text)};
}

// The word of "a|b|c" that the value chooses.
static void put_choice(Buffer *out, Piece words, u64 chosen)
{
    for (u64 i = 0;; i++) {
        const char *bar = memchr(words.at, '|', (size_t)(words.end - words.at));
        const char *end = bar ? bar : words.end;
        if (i == chosen) {
            buffer_put(out, words.at, (size_t)(end - words.at));
            return;
        }
        if (!bar) {
            buffer_putc(out, '?');
            return;
        }
        words.at = bar + 1;
    }
}

static void put_change(Buffer *out, i64 change)
{
    buffer_putc(out, change < 0 ? '-' : '+');
    buffer_put_commas(out, change < 0 ? -(u64)change : (u64)change);
}

static void put_protection(Buffer *out, u64 prot)
{
    buffer_putc(out, prot & PROT_READ ? 'r' : '-');
    buffer_putc(out, prot & PROT_WRITE ? 'w' : '-');
    buffer_putc(out, prot & PROT_EXEC ? 'x' : '-');
}

void field_put(const FieldDescription *field, u64 word, Buffer *out)
{
    switch (field->type) {
    case FIELD_AMOUNT: buffer_put_commas(out, word); break;
    case FIELD_SIGNED: buffer_printf(out, "%lld", (long long)word); break;
    case FIELD_CHANGE: put_change(out, (i64)word); break;
    case FIELD_ADDRESS: buffer_printf(out, "0x%llx", (unsigned long long)word); break;
    case FIELD_CHOICE: put_choice(out, whole(field->words ? field->words : "?"), word); break;
    case FIELD_PROTECTION: put_protection(out, word); break;
    case FIELD_TEXT: buffer_puts(out, word ? (const char *)word : ""); break;
    default: buffer_printf(out, "%llu", (unsigned long long)word); break;
    }
}

// ----------------------------------------------------------------------- templates

// The brace that closes the one at `at`, or NULL.
static const char *closing(Piece piece)
{
    int depth = 0;

    for (const char *c = piece.at; c < piece.end; c++) {
        depth += (*c == '{') - (*c == '}');
        if (depth == 0)
            return c;
    }
    return NULL;
}

// The bar between the words of a condition and the others, or their end.
static const char *bar_of(Piece words)
{
    int depth = 0;

    for (const char *c = words.at; c < words.end; c++) {
        depth += (*c == '{') - (*c == '}');
        if (depth == 0 && *c == '|')
            return c;
    }
    return words.end;
}

static void fill(const Filler *filler, Piece piece, int depth);

static void put_condition(const Filler *filler, const Field *field, Piece words, int depth)
{
    const char *bar = bar_of(words);

    if (is_set(field))
        fill(filler, (Piece){words.at, bar}, depth + 1);
    else if (bar < words.end)
        fill(filler, (Piece){bar + 1, words.end}, depth + 1);
}

// What stands between two braces.
static void put_field(const Filler *filler, Piece inside, int depth)
{
    size_t size = strspn(inside.at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    Piece name = {inside.at, inside.at + size};
    Field field = find_field(filler->values, name);

    if (name.end < inside.end && *name.end == '?') {
        put_condition(filler, &field, (Piece){name.end + 1, inside.end}, depth);
        return;
    }
    bool is_text = field.description && field.description->type == FIELD_TEXT;
    if (!field.description || (!field.is_known && !is_text))
        buffer_putc(filler->out, '?');
    else if (name.end < inside.end && *name.end == ':')
        put_choice(filler->out, (Piece){name.end + 1, inside.end}, field.word);
    else
        field_put(field.description, field.word, filler->out);
}

static void fill(const Filler *filler, Piece piece, int depth)
{
    while (piece.at < piece.end && filler->out->size <= filler->limit) {
        const char *close = *piece.at == '{' && depth < DEPTH_MAX ? closing(piece) : NULL;
        if (close) {
            put_field(filler, (Piece){piece.at + 1, close}, depth);
            piece.at = close + 1;
        } else {
            buffer_putc(filler->out, *piece.at++);
        }
    }
}

size_t report_words(const char *words, const FieldValues *values, char *buffer, size_t buffer_size)
{
    Buffer out = {0};
    Filler filler = {&out, values, buffer_size};

    if (buffer_size == 0)
        return 0;
    fill(&filler, whole(words ? words : ""), 0);
    size_t size = min_u64(out.size, buffer_size - 1);
    if (size)
        memcpy(buffer, out.data, size);
    buffer[size] = 0;
    buffer_free(&out);
    return size;
}
