// SPDX-License-Identifier: MIT
//
// A report of findings: memcheck's JSON (docs/user/json.md), whole, as lines, or cut off; or
// the XML of the incumbent. Read whole into one arena. Files are hostile: any nesting, any
// bytes, any counts.
#ifndef MUNINN_INSPECT_HTTP_FINDINGS_H
#define MUNINN_INSPECT_HTTP_FINDINGS_H

#include "base/arena.h"
#include "base/types.h"

typedef struct FoundFrame {
    u64 pc, object_offset;
    const char *function, *mangled, *file, *directory, *object; // NULL: not known
    u32 line;
    bool inlined;
    u32 source; // index in sources; U32_MAX: it has none
} FoundFrame;

typedef struct FoundStack {
    FoundFrame *frames;
    u32 count;
} FoundStack;

typedef struct FoundPart {
    const char *kind, *text; // text NULL: a stack only
    FoundStack stack;
} FoundPart;

// Where pointers to a leak's blocks are: docs/user/json.md.
typedef struct FoundHolder {
    const char *kind;
    u64 blocks, bytes;
    u64 record; // of "record": its number in the same search
    FoundStack stack;
    const char *name, *object; // NULL: none
    u64 thread, address;
} FoundHolder;

typedef struct Found {
    u64 id;
    const char *kind, *tool, *what, *suppression, *param; // suppression, param: NULL if none
    const char *title, *level; // as the report says of a kind that only it knows; or NULL
    u64 fingerprint;
    u64 count;
    u64 thread;
    const char *thread_name;
    bool has_leak;
    u64 leaked_bytes, leaked_blocks;
    u64 own_bytes; // what counts when records are added up: not what others have, too
    u64 check, record; // which search, and its number in it
    FoundHolder *holders;
    u32 holder_count;
    FoundStack stack;
    FoundPart *parts;
    u32 part_count;
} Found;

typedef struct FoundSource {
    const char *file, *directory;
} FoundSource;

typedef struct Findings {
    Arena arena; // holds all text
    const char *format, *tool, *command, *status; // never NULL
    i32 pid;
    Found *found;
    u32 count, capacity;
    FoundSource *sources; // that frames name, each once
    u32 source_count, source_capacity;
    char *problem;  // NULL, or a line about what could not be read
    u64 file_bytes; // when it was read
} Findings;

// True if the first bytes of a file look like a report.
bool findings_look(const char *head, size_t size);
// NULL: *ret_error (to be freed) says why.
Findings *findings_load(const char *path, char **ret_error);
void findings_free(Findings *findings);

// The text of an entry that would suppress it, to be freed.
char *finding_suppression(const Found *found);
bool finding_is_leak(const Found *found);
// Of its kind: "A block is lost: nothing points to it"; "error", "warning", "note".
const char *finding_title(const Found *found);
const char *finding_level(const Found *found);
// The frame that a person would look at first: of the program itself, with a line if there is
// one. NULL: it has no stack.
const FoundFrame *finding_place(const Found *found);

// ------------------------------------------------ between the readers and findings.c

// Each takes what can be read of the text. False: it is no report at all.
bool findings_read_json(Findings *findings, const char *text, size_t size);
bool findings_read_xml(Findings *findings, const char *text, size_t size);
Found *findings_add(Findings *findings); // NULL: no memory; moves what came before
u32 findings_source(Findings *findings, const char *directory, const char *file);
u64 finding_fingerprint(const Found *found);
void findings_note(Findings *findings, const char *problem);

#endif
