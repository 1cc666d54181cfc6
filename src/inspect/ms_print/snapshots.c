// SPDX-License-Identifier: MIT
//
// The table of snapshots and, below each detailed one, its tree: who allocated, below that who
// called. What is below the threshold is added up in one line at the end of its siblings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/saturate.h"
#include "inspect/ms_print/page.h"

void page_print_rule(void)
{
    for (int i = 0; i < 80; i++)
        putchar('-');
    putchar('\n');
}

void page_print_text(const char *text)
{
    static int is_terminal = -1;

    if (is_terminal < 0)
        is_terminal = isatty(STDOUT_FILENO);
    for (const char *c = text; *c; c++)
        putchar(is_terminal && ((u8)*c < ' ' || *c == 0x7f) ? '?' : *c);
}

void page_print_preamble(const PageOptions *options, const char *command,
                         const char *massif_arguments)
{
    page_print_rule();
    fputs("Command:            ", stdout);
    page_print_text(command);
    fputs("\nMassif arguments:   ", stdout);
    page_print_text(massif_arguments);
    fputs("\nms_print arguments:", stdout);
    for (int i = 0; i < options->argc; i++) {
        putchar(' ');
        page_print_text(options->argv[i]);
    }
    putchar('\n');
    page_print_rule();
}

char *page_commas(char text[COMMAS_BYTES], u64 number)
{
    char digits[24];
    size_t count = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    char *out = text;

    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

// ------------------------------------------------------------------- the table

void page_print_columns(const char *time_unit)
{
    char time[24];

    snprintf(time, sizeof(time), "time(%.12s)", time_unit);
    page_print_rule();
    printf("  n %14s %16s %16s %13s %12s\n", time, "total(B)", "useful-heap(B)",
           "extra-heap(B)", "stacks(B)");
    page_print_rule();
}

void page_print_row(const MassifFileSnapshot *snapshot)
{
    char time[COMMAS_BYTES], total[COMMAS_BYTES], heap[COMMAS_BYTES], extra[COMMAS_BYTES];
    char stacks[COMMAS_BYTES];

    printf("%3llu %14s %16s %16s %13s %12s\n", (unsigned long long)snapshot->number,
           page_commas(time, snapshot->time), page_commas(total, snapshot_total(snapshot)),
           page_commas(heap, snapshot->heap_bytes), page_commas(extra, snapshot->extra_bytes),
           page_commas(stacks, snapshot->stacks_bytes));
}

// -------------------------------------------------------------------- the tree

typedef struct TreePrinter {
    const PageOptions *options;
    const MassifNode *nodes;
    const PageTree *tree;
    char *prefix; // two characters for each level below the root: "| " or "  "
    u32 level;    // of the next node; the root has 0
} TreePrinter;

static double percent_of(const TreePrinter *printer, double bytes)
{
    return printer->tree->total_bytes > 0 ? bytes * 100 / printer->tree->total_bytes : 0;
}

static void print_size(const TreePrinter *printer, u64 bytes)
{
    char text[COMMAS_BYTES];
    i64 change = (i64)bytes;

    if (!printer->tree->weights)
        printf("%05.2f%% (%sB) ", percent_of(printer, (double)bytes), page_commas(text, bytes));
    else
        printf("%+06.2f%% (%c%sB) ", percent_of(printer, (double)change), change < 0 ? '-' : '+',
               page_commas(text, change < 0 ? -bytes : bytes));
}

static void print_prefix(const TreePrinter *printer, u32 levels)
{
    fwrite(printer->prefix, 2, levels, stdout);
}

typedef struct Small {
    u64 bytes;
    u32 count;
} Small; // children below the threshold

static bool is_small(const TreePrinter *printer, u32 node)
{
    const u64 *weights = printer->tree->weights;
    u64 bytes = weights ? weights[node] : printer->nodes[node].bytes;

    return percent_of(printer, (double)bytes) < printer->options->threshold_percent;
}

static Small add_small_children(const TreePrinter *printer, u32 parent)
{
    Small small = {0};

    for (u32 i = parent + 1; i < printer->nodes[parent].end; i = printer->nodes[i].end) {
        if (is_small(printer, i)) {
            saturate_grow_u64(&small.bytes, printer->nodes[i].bytes);
            small.count++;
        }
    }
    return small;
}

// What ends the children of a node: those that are too small, or the empty line below a leaf.
static void print_end(const TreePrinter *printer, u32 parent)
{
    Small small = add_small_children(printer, parent);

    if (small.count > 0) {
        print_prefix(printer, printer->level);
        fputs("->", stdout);
        print_size(printer, small.bytes);
        printf("in %u+ places, all below ms_print's threshold (%05.2f%%)\n", small.count,
               printer->options->threshold_percent);
    }
    if (small.count > 0 || printer->nodes[parent].end == parent + 1) {
        print_prefix(printer, printer->level);
        putchar('\n');
    }
}

static void print_node(TreePrinter *printer, u32 node, bool is_last)
{
    u32 level = printer->level;

    if (level > 0) {
        print_prefix(printer, level - 1);
        fputs("->", stdout);
        memcpy(printer->prefix + (size_t)(level - 1) * 2, is_last ? "  " : "| ", 2);
    }
    print_size(printer, printer->nodes[node].bytes);
    page_print_text(printer->nodes[node].label);
    putchar('\n');
}

// The nodes in order, with the ends of those that each one leaves. Trees of hostile files are
// deep: no recursion.
static void print_nodes(TreePrinter *printer, u32 root, u32 *path)
{
    const MassifNode *nodes = printer->nodes;

    for (u32 i = root; i < nodes[root].end;) {
        if (i != root && is_small(printer, i)) {
            i = nodes[i].end;
        } else {
            u32 parent_end = i == root ? 0 : nodes[path[printer->level - 1]].end;
            print_node(printer, i, nodes[i].end == parent_end);
            path[printer->level++] = i++;
        }
        while (printer->level > 0 && i >= nodes[path[printer->level - 1]].end) {
            printer->level--;
            print_end(printer, path[printer->level]);
        }
    }
}

void page_print_tree(const PageOptions *options, const PageTree *tree)
{
    const MassifNode *nodes = tree->nodes;
    TreePrinter printer = {.options = options, .nodes = nodes, .tree = tree};
    u32 root = tree->root, deepest = 0;

    for (u32 i = root; i < nodes[root].end; i++)
        deepest = (u32)max_u64(deepest, nodes[i].depth);
    u32 *path = calloc((size_t)deepest + 2, sizeof(*path));
    printer.prefix = calloc((size_t)deepest + 2, 2);
    if (path && printer.prefix)
        print_nodes(&printer, root, path);
    free(path);
    free(printer.prefix);
}

void page_print_snapshots(const PageOptions *options, const MassifFile *file)
{
    bool has_columns = false;

    for (u32 i = 0; i < file->snapshot_count; i++) {
        const MassifFileSnapshot *snapshot = &file->snapshots[i];
        if (!has_columns)
            page_print_columns(file->time_unit);
        page_print_row(snapshot);
        has_columns = snapshot->node_count == 0;
        if (has_columns)
            continue;
        PageTree tree = {.nodes = file->nodes, .root = snapshot->first_node,
                         .total_bytes = (double)snapshot_total(snapshot)};
        page_print_tree(options, &tree);
    }
}
