// SPDX-License-Identifier: MIT
//
// What is shown: a sample as lines, cut to the width, without anything that a terminal would
// obey. The same lines go to the screen and to scripts.
#ifndef MUNINN_INSPECT_TOP_VIEW_H
#define MUNINN_INSPECT_TOP_VIEW_H

#include <stdio.h>

#include "inspect/top/sample.h"

enum { HISTORY_MAX = 1024 };

typedef struct View {
    i32 pid;
    char command[512];
    const TopSample *sample;
    TopOrder order;
    double interval_s;
    u64 history[HISTORY_MAX]; // heap bytes, newest last
    u32 history_count;
    u32 selected, offset;     // rows
    bool shows_stack, shows_help, is_paused, has_ended;
    bool is_terminal;         // marks, hints, all lines of the screen
    bool is_utf8;
    u32 width, height;        // 0: no end; never of a terminal
} View;

// A new sample: keeps it in the history and the selection within the rows.
void view_take(View *view, const TopSample *sample);
void view_move(View *view, i64 rows); // the selection
// How many rows fit.
u32 view_rows(const View *view);
void view_print(const View *view, FILE *out);
// One line of JSON.
void view_print_json(const View *view, u32 rows, FILE *out);

#endif
