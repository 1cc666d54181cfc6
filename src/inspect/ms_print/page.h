// SPDX-License-Identifier: MIT
//
// The parts of ms_print's page. All print to standard output; text of the profiled program
// loses its control characters if that is a terminal.
#ifndef MUNINN_INSPECT_MS_PRINT_PAGE_H
#define MUNINN_INSPECT_MS_PRINT_PAGE_H

#include "inspect/foreign/foreign.h"

enum { GRAPH_CELLS_MIN = 4, GRAPH_CELLS_MAX = 1000 };

typedef struct PageOptions {
    double threshold_percent;
    u32 width, height; // of the graph
    int argc;          // all words of the command, for the preamble
    char **argv;
} PageOptions;

typedef struct PageTree {
    const MassifNode *nodes;
    u32 root;
    double total_bytes; // 100 %
    // Of a difference: bytes are i64, shown with their sign; how much each node has changed,
    // whatever the sign, is what the threshold is about. NULL: no difference.
    const u64 *weights;
} PageTree;

void page_print_rule(void);
void page_print_text(const char *text);
void page_print_preamble(const PageOptions *options, const char *command,
                         const char *massif_arguments);

void page_print_graph(const PageOptions *options, const MassifFile *file);

// The table's head, one row of it, a tree.
void page_print_columns(const char *time_unit);
void page_print_row(const MassifFileSnapshot *snapshot);
void page_print_tree(const PageOptions *options, const PageTree *tree);
void page_print_snapshots(const PageOptions *options, const MassifFile *file);

static inline u64 snapshot_total(const MassifFileSnapshot *snapshot)
{
    return snapshot->heap_bytes + snapshot->extra_bytes + snapshot->stacks_bytes;
}

// A recording, or what can be made one, in the form of massif.out: all of it, or one moment. NULL:
// *ret_error (to be freed) says why.
Recording *recorded_open(const char *path, char **ret_error);
// Whether the one that was opened told of damage; the lines that were held back are counted.
bool recorded_is_damaged(void);
MassifFile *recorded_whole(Recording *recording, char **ret_error);
MassifFile *recorded_at(Recording *recording, const char *time, char **ret_error);
// Prints the page of a difference, "TIME,TIME". Returns the status to exit with.
int recorded_print_change(const PageOptions *options, Recording *recording, const char *times,
                          char **ret_error);

// 1,234,567 in a buffer of at least COMMAS_BYTES; returns it.
enum { COMMAS_BYTES = 32 };
char *page_commas(char text[COMMAS_BYTES], u64 number);

#endif
