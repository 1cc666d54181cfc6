// SPDX-License-Identifier: MIT
//
// All rows: of the table of calls, and of the tables that a row leads to.
#include <stdio.h>
#include <string.h>

#include "walker.h"

Row rows[ROWS_MAX];
u32 row_count;

static const char *why_excluded(const char *name)
{
    static const struct {
        const char *name, *reason;
    } list[] = {
#define EXCLUDED(row, reason) { row, reason },
#include "excluded.def"
#undef EXCLUDED
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        size_t length = strcspn(list[i].name, "*");
        if (strncmp(list[i].name, name, length) == 0 &&
            (list[i].name[length] == '*' || name[length] == 0))
            return list[i].reason;
    }
    return NULL;
}

static void add(u64 nr, const SyscallRow *row, const SyscallSub *sub, u64 key)
{
    const char *call = syscall_row(nr)->name;

    if (row_count == ROWS_MAX)
        return;
    Row *r = &rows[row_count++];
    *r = (Row){ .nr = nr, .row = row, .sub = sub, .key = key };
    if (sub)
        snprintf(r->name, sizeof(r->name), "%s(%s)", call, row->name);
    else
        snprintf(r->name, sizeof(r->name), "%s", call);
    r->excluded = why_excluded(r->name);
}

void rows_list(void)
{
    for (u64 nr = 0; nr < NR_LIMIT; nr++) {
        const SyscallRow *row = syscall_row(nr);
        if (!row)
            continue;
        add(nr, row, NULL, 0);
        for (const SyscallSub *sub = row->sub; sub; sub = sub->other)
            for (u32 i = 0; i < sub->count; i++)
                add(nr, &sub->rows[i].row, sub, sub->rows[i].key);
    }
}
