// SPDX-License-Identifier: MIT
//
// What people ask of a recording: a selection of it (a range or a moment, a filter, a
// metric), summed up as a list of groups or a tree of frames. Shared by `muninn heap`,
// ms_print, the exports and the viewer, so that all show the same numbers.
#ifndef MUNINN_RECORDING_QUERY_H
#define MUNINN_RECORDING_QUERY_H

#include "recording/recording.h"

typedef enum Metric {
    METRIC_LIVE,        // bytes live at the selected moment (the end of the range)
    METRIC_PEAK,        // bytes live at the peak
    METRIC_ALLOCATED,   // bytes allocated in the range
    METRIC_ALLOCATIONS, // how many
    METRIC_TEMPORARY,   // how many of them were temporary
    METRIC_LEAKED,      // bytes allocated in the range and live at the end of the run
    METRIC_GROWTH,      // live at the end of the range less live at its start (signed)
    METRIC_COUNT,
} Metric;

// NULL and 0 where nothing is asked. Patterns are shell patterns of the whole name (a function also
// without its arguments, a file or an object also without its directory), or /regular expressions/.
typedef struct Selection {
    u64 from_ns, to_ns;      // to 0: the end
    bool at_peak;            // the moment of the peak instead
    u32 spaces;              // bits 1 << Space; 0: the heap alone
    const char *function;    // some frame matches; with a ! before it: none does
    const char *file;
    const char *object;
    u32 thread;              // that allocated; 0: any
    u64 min_size, max_size;  // of blocks; these and lifetimes need events
    u64 min_lifetime_ns, max_lifetime_ns;
} Selection;

// Sums per site of what is selected; sites that do not match have zeros. Returns false with a
// line in *ret_error (to be freed): a bad pattern, or events that are not kept.
bool selection_sums(Recording *recording, const Selection *selection, SiteSums *ret_sums,
                    char **ret_error);
// The moment of the peak of these spaces (0: of the heap). Not known: only that it was in the span
// that ends then.
u64 recording_peak_ns(Recording *recording, u32 spaces, bool *ret_is_known);
// The metric of one site's sums, where peak and leaked have been selected by selection_metric().
bool selection_metric(Recording *recording, const Selection *selection, Metric metric,
                      i64 *ret_values, char **ret_error);
// The same, and how many blocks or allocations make each value up (ret_counts may be NULL).
bool selection_metric_counts(Recording *recording, const Selection *selection, Metric metric,
                             i64 *ret_values, u64 *ret_counts, char **ret_error);

typedef struct TreeOptions {
    bool bottom_up;          // roots are innermost frames (allocators left out)
    bool collapse_recursion;
    bool by_function;        // one node for a function, whatever line; else function and line
    bool fold_libraries;     // frames of one library in a row become one
    const char *only_code;   // pattern of objects or files; others are left out
    bool hide_allocators;    // malloc, operator new… at the innermost end are left out
} TreeOptions;

typedef struct TreeNode {
    u32 parent;           // index; of the root: itself
    u32 first_child, next_sibling; // 0: none; children by value, largest first
    u32 frame;            // in the recording; U32_MAX: the root, or a frame without a name
    u32 context;          // one that it stands for
    i64 value;            // with its children
    i64 self;             // of stacks that end here
    u64 count;            // blocks or allocations, if the tree was built with counts
    bool is_folded;       // stands for all frames of its library in a row
    bool any_line;        // stands for a function, whatever line
} TreeNode;

typedef struct Tree {
    TreeNode *nodes; // [0] is the root
    u32 count;
} Tree;

// values[site], as selection_metric() gives them. The root's value is their sum. NULL: no memory,
// or a bad pattern in only_code.
Tree *tree_build(Recording *recording, const i64 *values, const TreeOptions *options);
Tree *tree_build_counts(Recording *recording, const i64 *values, const u64 *counts,
                        const TreeOptions *options);
void tree_free(Tree *tree);
// "main (app.c:12)", "main (in /usr/bin/app)" or "0x401136: ??? (in /usr/bin/app)"; "all" for
// the root, "[libc.so.6]" for a folded library. What does not fit is cut at a character.
void tree_node_label(Recording *recording, const TreeNode *node, char *text, size_t size);

#endif
