// SPDX-License-Identifier: MIT
//
// The text writer's state, for the files that make its text: text.c the lines,
// text_end.c the lists and counts at the end, terminal.c what only people see.
#ifndef MUNINN_MONITOR_REPORT_TEXT_WRITER_H
#define MUNINN_MONITOR_REPORT_TEXT_WRITER_H

#include "monitor/report/report_internal.h"

typedef enum Paint {
    PAINT_NONE,
    PAINT_PREFIX,
    PAINT_HEADLINE,
    PAINT_ADDRESS,
    PAINT_FUNCTION,
    PAINT_PLACE,
    PAINT_PART,
    PAINT_MARK,
    PAINT_COUNT
} Paint;

typedef struct TextWriter {
    Writer base;
    bool terminal; // colour, excerpts, grouping
    Reader reader;
    u32 columns;
    u32 last_tid; // the thread whose findings are being shown
    bool tells_death; // a fatal signal was written
    char marker_begin[64], marker_end[64];
    Buffer line; // the line being composed
} TextWriter;

// A line: begun with its prefix, ended with its newline. `mark` is '=', '-' or '*'.
void text_begin(TextWriter *text, char mark);
void text_end(TextWriter *text);
void text_paint(TextWriter *text, Paint paint);
void text_put_line(TextWriter *text, char mark, const char *line);
__attribute__((format(printf, 3, 4))) void text_printf_line(TextWriter *text, char mark,
                                                            const char *format, ...);
void text_put_finding(TextWriter *text, const Finding *finding, bool with_source);
void text_put_summary(TextWriter *text, const RunSummary *summary);

// The source at the finding, and beside or below it the source at its origin.
void terminal_put_excerpts(TextWriter *text, const Finding *finding);
// Findings by source line, the most frequent first.
void terminal_put_groups(TextWriter *text, const RunSummary *summary);
u32 terminal_columns(int fd);

#endif
