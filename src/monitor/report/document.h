// SPDX-License-Identifier: MIT
//
// A JSON document that is whole at every moment. The array of findings stands near
// the end; each finding overwrites the few closing lines behind the last one with
// itself and new closing lines, in one write. Whoever is killed, and when: the file
// is valid JSON with every finding so far.
//
// On a pipe nothing can be overwritten: there the closing lines come at the end.
#ifndef MUNINN_MONITOR_REPORT_DOCUMENT_H
#define MUNINN_MONITOR_REPORT_DOCUMENT_H

#include "base/types.h"
#include "monitor/report/report_internal.h"

typedef struct CountPlace {
    u64 unique, offset;
} CountPlace;

typedef struct Document {
    Writer base;
    const char *tail; // the closing lines while findings may come
    u64 end_offset;   // where the tail begins
    u64 item_count;
    CountPlace *counts; // where each finding's count is, to be corrected at the end
    size_t count_count, count_capacity;
    bool is_lines; // JSON lines: no document around the items
    bool patches;  // the sink can be rewritten
} Document;

// Writes what is in `out` as the beginning, and the tail.
void document_begin(Document *document, const char *tail);
// Appends what is in `out`, one item. `count_at` is where in `out` its count stands,
// made by document_put_count().
void document_add(Document *document, u64 unique, size_t count_at);
// Puts a number with room to become any other; returns where.
size_t document_put_count(Document *document, u64 count);
// Corrects the counts and writes what is in `out` instead of the tail.
void document_end(Document *document, const RunSummary *summary);

// "text" with its quotes; null for NULL.
void json_put_string(Buffer *out, const char *text);
// `, "name": "text"`; nothing if text is NULL.
void json_put_member(Buffer *out, const char *name, const char *text);

#endif
