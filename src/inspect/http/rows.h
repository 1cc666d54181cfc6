// SPDX-License-Identifier: MIT
//
// The rows of a table: what each group has in a selection, less what it has in another if
// there is a base.
#ifndef MUNINN_INSPECT_HTTP_ROWS_H
#define MUNINN_INSPECT_HTTP_ROWS_H

#include "inspect/http/viewer.h"

typedef enum Cell {
    CELL_LIVE,
    CELL_BLOCKS,
    CELL_PEAK,
    CELL_PEAK_OWN,
    CELL_ALLOCATED,
    CELL_ALLOCATIONS,
    CELL_FREED,
    CELL_FREES,
    CELL_TEMPORARY,
    CELL_REALLOCATIONS,
    CELL_LEAKED,
    CELL_GROWTH,
    CELL_COUNT,
} Cell;
extern const char *const cell_names[CELL_COUNT];

typedef struct Row {
    u32 group;
    bool is_base_only; // then `group` is the base's
    i64 cells[CELL_COUNT];
    u64 first_ns, last_ns; // 0 and 0: nothing was allocated
} Row;

typedef struct Rows {
    Row *rows;
    i64 (*base)[CELL_COUNT]; // of each row; NULL: there is no base
    u32 count;
    bool knows_leaked; // else that cell is 0: it would take a walk through all events
    const Groups *groups, *base_groups;
    const Names *names, *base_names;
} Rows;

// Of the call's selection and base; the memo's. Groups with nothing at all are left out.
const Rows *call_rows(Call *call, const Chosen *chosen, const Chosen *base, Group group);
// Leaked bytes of a part of the run are computed only for whoever sorts by them.
bool request_wants_leaked(const Request *request);

#endif
