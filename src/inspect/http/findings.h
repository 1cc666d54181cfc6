// SPDX-License-Identifier: MIT
//
// A report of findings: memcheck's JSON (docs/user/json.md), whole, as lines, or cut off; or
// the XML of the incumbent. Read whole into one arena. Files are hostile: any nesting, any
// bytes, any counts.
#ifndef MUNINN_INSPECT_HTTP_FINDINGS_H
#define MUNINN_INSPECT_HTTP_FINDINGS_H

#include "base/arena.h"
#include "base/types.h"

typedef struct Findings Findings;

typedef struct FindingFrame {
    u64 pc, object_offset;
    const char *function, *mangled, *file, *directory, *object; // NULL: not known
    u32 line;
    bool inlined;
    u32 source; // index in sources; U32_MAX: it has none
} FindingFrame;

typedef struct FoundStack {
    FindingFrame *frames;
    u32 count;
} FoundStack;

typedef struct FoundPart {
    const char *kind, *text; // text NULL: a stack only
    FoundStack stack;
} FoundPart;

typedef struct Found {
    u64 id;
    const char *kind, *tool, *what, *suppression, *param; // suppression, param: NULL if none
    u64 fingerprint;
    u64 count;
    u64 thread;
    const char *thread_name;
    bool has_leak;
    u64 leaked_bytes, leaked_blocks;
    FoundStack stack;
    FoundPart *parts;
    u32 part_count;
} Found;

typedef struct FoundSource {
    const char *file, *directory;
} FoundSource;

struct Findings {
    Arena arena; // holds all text and arrays
    const char *format, *tool, *command, *status, *working_directory;
    i32 pid;
    Found *found;
    u32 count, capacity;
    FoundSource *sources; // that frames name, each once
    u32 source_count, source_capacity;
    char *problem; // NULL, or a line about what could not be read
    u64 file_bytes; // when it was read
};

// True if the first bytes of a file look like a report.
bool findings_look(const char *head, size_t size);
// NULL: *ret_error (to be freed) says why.
Findings *findings_load(const char *path, char **ret_error);
void findings_free(Findings *findings);

// ------------------------------------------------ between the readers and findings.c

// Each reads as much as can be read. False: it is no report at all.
bool findings_read_json(Findings *findings, const char *text, size_t size);
bool findings_read_xml(Findings *findings, const char *text, size_t size);

// Appends; NULL: no memory. The next call moves what came before.
Found *findings_add(Findings *findings);
// A copy in the arena that ends in zero; NULL only if there is no memory.
char *findings_keep(Findings *findings, const char *text, size_t size);
// "0x…"
void findings_note(Findings *findings, size_t offset, const char *what);

#endif
