// SPDX-License-Identifier: MIT
//
// Profiles in callgrind's format, which callgrind_annotate and KCachegrind read: the one place that
// writes it. The format is described in the incumbent's manual, "Callgrind Format Specification".
//
// Two layers. A *writer* puts costs and calls into a file, function by function, as a profiler of
// calls knows them. A *call tree* takes stacks with costs, as a heap profiler knows them, sums them
// up by function and line, and uses a writer.
#ifndef MUNINN_MONITOR_CALLGRIND_CALLGRIND_H
#define MUNINN_MONITOR_CALLGRIND_CALLGRIND_H

#include <stdio.h>

#include "monitor/symbols/symbols.h"

enum { CALLGRIND_EVENTS_MAX = 64 };

// What is counted: a short name, which formulas use, and what it means (NULL: it says that itself).
typedef struct CallgrindEvent {
    const char *name, *meaning;
} CallgrindEvent;

typedef struct CallgrindConfig {
    const char *creator; // "muninn-0.1"
    const char *command; // with its arguments
    i32 pid;
    const CallgrindEvent *events;
    u32 event_count;       // CALLGRIND_EVENTS_MAX at most
    bool has_instructions; // positions have an address in front of the line
    bool compresses;       // a name is written once, and is a number from then on
} CallgrindConfig;

// A function. NULL: not known.
typedef struct CallgrindPlace {
    const char *object, *file, *function;
} CallgrindPlace;

typedef struct CallgrindPosition {
    u64 address; // used with has_instructions
    u32 line;    // 0: not known
} CallgrindPosition;

// ---------------------------------------------------------------- the writer

typedef struct CallgrindWriter CallgrindWriter;

// Writes the head of the file. `out` and what the config points to must stay. NULL: no memory.
CallgrindWriter *callgrind_open(FILE *out, const CallgrindConfig *config);
// What follows belongs to this function, until the next one begins.
void callgrind_function(CallgrindWriter *writer, const CallgrindPlace *function);
// Its own cost at a place; event_count values.
void callgrind_cost(CallgrindWriter *writer, CallgrindPosition at, const u64 *values);
// Its calls from `at` of what begins at `target`, with what they cost altogether.
void callgrind_call(CallgrindWriter *writer, const CallgrindPlace *callee,
                    CallgrindPosition target, u64 calls, CallgrindPosition at,
                    const u64 *inclusive);
// Writes the sums and frees the writer; the file stays open. False: something could not be written.
bool callgrind_close(CallgrindWriter *writer, const u64 *totals);

// ---------------------------------------------------------------- trees

typedef struct CallTree CallTree;

CallTree *calltree_new(u32 event_count);
void calltree_free(CallTree *tree);
// Adds the cost of a stack, innermost frame first. Functions that allocate are left out when they
// are the innermost. False: no memory.
bool calltree_add(CallTree *tree, const Frame *frames, size_t count, const u64 *values);
// Writes the tree to a file that did not exist, or is replaced. Returns 0 or -errno.
int calltree_write(CallTree *tree, const char *path, const CallgrindConfig *config);
// The same, into a file that is open; for tests.
bool calltree_put(CallTree *tree, FILE *out, const CallgrindConfig *config);

#endif
