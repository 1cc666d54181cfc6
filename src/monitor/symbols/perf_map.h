// SPDX-License-Identifier: MIT
//
// Names of code that a JIT compiler made, from the file it writes for `perf`:
// /tmp/perf-PID.map, lines of `START SIZE NAME`. The file grows while the client runs.
#ifndef MUNINN_MONITOR_SYMBOLS_PERF_MAP_H
#define MUNINN_MONITOR_SYMBOLS_PERF_MAP_H

#include "base/types.h"

typedef struct PerfName {
    u64 start, end;
    u64 order; // its line: of two names for one address the later one counts
    u64 text;  // offset in PerfMap.texts
} PerfName;

typedef struct PerfMap {
    i32 pid;
    u64 read_bytes; // up to the last whole line
    u64 inode;
    PerfName *names; // by start
    size_t count, capacity, sorted;
    u64 longest; // the size of the largest
    char *texts;
    size_t texts_size, texts_capacity;
} PerfMap;

void perf_map_init(PerfMap *map, i32 pid);
void perf_map_free(PerfMap *map);

// The name of the code at an address, or NULL. It lives until the next call.
const char *perf_map_find(PerfMap *map, u64 address, u64 *ret_start);

// Exposed for its fuzz test: adds the whole lines of a text, returns how many bytes those have.
size_t perf_map_parse(PerfMap *map, const char *text, size_t size);

#endif
