// SPDX-License-Identifier: MIT
//
// See document.h.
#include "monitor/report/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_WIDTH = 20 }; // the longest u64

void json_put_string(Buffer *out, const char *text)
{
    if (!text) {
        buffer_puts(out, "null");
        return;
    }
    buffer_putc(out, '"');
    buffer_puts_safe(out, text, READER_JSON);
    buffer_putc(out, '"');
}

void json_put_member(Buffer *out, const char *name, const char *text)
{
    if (!text)
        return;
    buffer_printf(out, ", \"%s\": ", name);
    json_put_string(out, text);
}

static void flush_at_end(Document *document, size_t size_without_tail)
{
    Writer *writer = &document->base;

    if (document->patches)
        sink_write_at(&writer->sink, writer->out.data, writer->out.size, document->end_offset);
    else
        sink_write(&writer->sink, writer->out.data, writer->out.size);
    document->end_offset += size_without_tail;
    buffer_clear(&writer->out);
}

static void add_tail(Document *document)
{
    if (document->patches && !document->is_lines)
        buffer_puts(&document->base.out, document->tail);
}

void document_begin(Document *document, const char *tail)
{
    size_t size = document->base.out.size;

    document->tail = tail;
    document->patches = document->base.sink.seekable && document->base.sink.owned;
    add_tail(document);
    sink_begin(&document->base.sink, document->base.out.data, document->base.out.size);
    document->end_offset = size;
    buffer_clear(&document->base.out);
}

size_t document_put_count(Document *document, u64 count)
{
    size_t at = document->base.out.size;

    if (document->patches)
        buffer_printf(&document->base.out, "%-*llu", COUNT_WIDTH, (unsigned long long)count);
    else
        buffer_printf(&document->base.out, "%llu", (unsigned long long)count);
    return at;
}

static void remember_count(Document *document, u64 unique, u64 offset)
{
    if (document->count_count == document->count_capacity) {
        size_t capacity = document->count_capacity ? 2 * document->count_capacity : 64;
        CountPlace *counts = realloc(document->counts, capacity * sizeof(*counts));
        if (!counts)
            return;
        document->counts = counts;
        document->count_capacity = capacity;
    }
    document->counts[document->count_count++] = (CountPlace){unique, offset};
}

void document_add(Document *document, u64 unique, size_t count_at)
{
    size_t size = document->base.out.size;

    remember_count(document, unique, document->end_offset + count_at);
    document->item_count++;
    add_tail(document);
    flush_at_end(document, size);
}

static int compare_places(const void *left, const void *right)
{
    const CountPlace *a = left, *b = right;

    return a->unique < b->unique ? -1 : a->unique > b->unique;
}

static void correct_counts(Document *document, const RunSummary *summary)
{
    char text[COUNT_WIDTH + 1];

    if (!document->patches || !document->counts)
        return;
    qsort(document->counts, document->count_count, sizeof(*document->counts), compare_places);
    for (size_t i = 0; i < summary->finding_count; i++) {
        const Finding *finding = summary->findings[i];
        CountPlace key = {finding->unique, 0};
        const CountPlace *place =
            bsearch(&key, document->counts, document->count_count, sizeof(key), compare_places);
        if (!place)
            continue;
        snprintf(text, sizeof(text), "%-*llu", COUNT_WIDTH, (unsigned long long)finding->count);
        sink_write_at(&document->base.sink, text, COUNT_WIDTH, place->offset);
    }
}

void document_end(Document *document, const RunSummary *summary)
{
    correct_counts(document, summary);
    flush_at_end(document, document->base.out.size);
    free(document->counts);
}
