// SPDX-License-Identifier: MIT
//
// The graph: a bar for each snapshot, ':' normal, '@' detailed, '#' the peak. Where bars share a
// column, each cell shows the most important one that reaches it. From the top of a bar a line
// leads to the column before the next bar.
//
// How numbers are rounded is what other ms_prints do, since people compare pages.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/ms_print/page.h"

typedef struct Graph {
    u32 width, height;
    char *cells; // rows of width, [0] is the lowest
} Graph;

// -------------------------------------------------------------------- the axes

typedef struct AxisUnit {
    const char *time_unit; // it scales times of this unit
    const char *names[7];
    double steps[7];       // of names[i], in units of names[i - 1]
    double least[7];       // values from here on go to the next name
} AxisUnit;

#define BINARY_STEPS {1, 1024, 1024, 1024, 1024, 1024, 1024}
#define BINARY_LEAST {1000, 1000, 1000, 1000, 1000, 1000, 1e300}

static const AxisUnit axis_units[] = {
    {"B", {"B", "KB", "MB", "GB", "TB", "PB", "EB"}, BINARY_STEPS, BINARY_LEAST},
    {"i", {"i", "ki", "Mi", "Gi", "Ti", "Pi", "Ei"}, BINARY_STEPS, BINARY_LEAST},
    {"ms", {"ms", "s", "h"}, {1, 1000, 3600}, {1000, 3600, 1e300}},
};

// What the end of an axis is called: "19.71" and "KB". An unknown unit is left as it is.
static const char *label_axis(const char *time_unit, u64 most, char ret_label[32])
{
    const AxisUnit *unit = NULL;
    double value = (double)most;
    size_t step = 0;

    for (size_t i = 0; i < ARRAY_LEN(axis_units); i++) {
        if (strcmp(axis_units[i].time_unit, time_unit) == 0)
            unit = &axis_units[i];
    }
    while (unit && value >= unit->least[step])
        value /= unit->steps[++step];
    if (step == 0)
        snprintf(ret_label, 32, "%llu", (unsigned long long)most);
    else
        snprintf(ret_label, 32, value < 10 ? "%.3f" : value < 100 ? "%.2f" : "%.1f", value);
    return unit ? unit->names[step] : time_unit;
}

// -------------------------------------------------------------------- the bars

static int rank(char cell)
{
    return cell == '#' ? 3 : cell == '@' ? 2 : cell == ':' ? 1 : 0;
}

static void set_cell(Graph *graph, u32 column, u32 row, char mark)
{
    char *cell = &graph->cells[(size_t)row * graph->width + column];

    if (rank(mark) > rank(*cell))
        *cell = mark;
}

static u32 column_of(const Graph *graph, u64 time, u64 last)
{
    double column = (double)time / (double)last * graph->width;

    return column < graph->width ? (u32)column : graph->width - 1;
}

// How many rows a bar fills: row k when it reaches k times a row's share of the highest.
static u32 rows_of(const Graph *graph, u64 bytes, u64 highest)
{
    double share = (double)highest / graph->height;
    u32 rows = (u32)((double)bytes / share);

    rows = rows > 0 ? rows - 1 : 0; // division may round up
    while (rows < graph->height && (double)bytes >= (rows + 1) * share)
        rows++;
    return rows;
}

static char mark_of(const MassifFile *file, u32 index, u64 peak)
{
    if (index == peak)
        return '#';
    return file->snapshots[index].tree == MASSIF_TREE_EMPTY ? ':' : '@';
}

static void draw_bars(Graph *graph, const MassifFile *file, u64 last, u64 highest, u64 peak)
{
    for (u32 i = 0; i < file->snapshot_count; i++) {
        const MassifFileSnapshot *snapshot = &file->snapshots[i];
        u32 column = column_of(graph, snapshot->time, last);
        u32 rows = rows_of(graph, snapshot_total(snapshot), highest);
        char mark = mark_of(file, i, peak);

        for (u32 row = 0; row < rows; row++)
            set_cell(graph, column, row, mark);
        if (rows == 0 || i + 1 == file->snapshot_count)
            continue;
        u32 next = column_of(graph, snapshot[1].time, last);
        for (u32 c = column + 1; c < next; c++)
            graph->cells[(size_t)(rows - 1) * graph->width + c] = mark;
    }
}

static void print_cells(const Graph *graph, const char *y_label)
{
    for (u32 row = graph->height; row-- > 0;) {
        printf("%5s%c", row + 1 == graph->height ? y_label : "",
               row + 1 == graph->height ? '^' : '|');
        fwrite(graph->cells + (size_t)row * graph->width, 1, graph->width, stdout);
        putchar('\n');
    }
}

// ----------------------------------------------------------------- the details

static void print_detailed(const MassifFile *file, u64 peak)
{
    bool is_first = true;

    printf("\nNumber of snapshots: %u\n Detailed snapshots: [", file->snapshot_count);
    for (u32 i = 0; i < file->snapshot_count; i++) {
        if (file->snapshots[i].tree == MASSIF_TREE_EMPTY)
            continue;
        printf("%s%u%s", is_first ? "" : ", ", i, i == peak ? " (peak)" : "");
        is_first = false;
    }
    puts("]\n");
}

void page_print_graph(const PageOptions *options, const MassifFile *file)
{
    Graph graph = {.width = options->width, .height = options->height};
    u64 last = 0, highest = 0, peak = UINT64_MAX;
    char x_label[32], y_label[32];

    for (u32 i = 0; i < file->snapshot_count; i++) {
        const MassifFileSnapshot *snapshot = &file->snapshots[i];
        last = max_u64(last, snapshot->time);
        highest = max_u64(highest, snapshot_total(snapshot));
        if (snapshot->tree == MASSIF_TREE_PEAK)
            peak = snapshot->number;
    }
    last = max_u64(last, 1);
    highest = max_u64(highest, 1);

    graph.cells = malloc((size_t)graph.width * graph.height);
    if (!graph.cells)
        return;
    memset(graph.cells, ' ', (size_t)graph.width * graph.height);
    draw_bars(&graph, file, last, highest, peak);

    const char *y_unit = label_axis("B", highest, y_label);
    const char *x_unit = label_axis(file->time_unit, last, x_label);
    printf("\n\n%6s\n", y_unit);
    print_cells(&graph, y_label);
    fputs("   0 +", stdout);
    for (u32 i = 1; i < graph.width; i++)
        putchar('-');
    putchar('>');
    page_print_text(x_unit);
    printf("\n     0%*s%5s\n", graph.width > 5 ? (int)graph.width - 5 : 0, "", x_label);
    free(graph.cells);
    print_detailed(file, peak);
}
