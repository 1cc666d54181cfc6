// SPDX-License-Identifier: MIT
//
// What all makers of recordings share. An importer reads a text, gives stacks and sizes; blocks,
// addresses and events are made here.
#ifndef MUNINN_INSPECT_FOREIGN_IMPORT_H
#define MUNINN_INSPECT_FOREIGN_IMPORT_H

#include "base/map.h"
#include "inspect/foreign/foreign.h"
#include "recording/recording.h"

typedef struct ImportBlock {
    u64 size, usable;
} ImportBlock;

typedef struct ImportSite {
    Space space;
    u64 live_bytes, live_usable;
    ImportBlock *blocks; // what is live, oldest first
    u32 block_count, block_room;
} ImportSite;

typedef struct Import {
    RecordingWriter *writer;
    char path[64];   // of the file it writes
    Moment now;
    ImportSite *sites;
    u32 site_count, site_room;
    Map site_of;     // space and context to site
    Map contexts;    // hash of parent and label to context
    char **labels;   // by context
    u32 *parents;
    u32 context_count, context_room; // context 0 counts
    bool failed;     // no memory: what there is is kept
    RecordingWarnFn *warn;
    void *warn_argument;
} Import;

// An importer. False: it is not this kind of file at all; *ret_error (to be freed) says why.
typedef bool ImporterFn(Import *import, ForeignText *text, char **ret_error);
ImporterFn import_massif, import_heaptrack, import_pprof;
// By the first bytes of the text, decompressed.
bool heaptrack_is(const ForeignText *text);
bool pprof_is(const ForeignText *text);

// Called once by an importer, before all else. False: the file cannot be made.
bool import_begin(Import *import, const RecordingInfo *info, char **ret_error);
void import_warn(const Import *import, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The context of a frame, called from `parent`. Equal labels are the same frame.
u32 import_context(Import *import, u32 parent, const char *label, const RecordedFrame *frame);
u32 import_site(Import *import, Space space, u32 context);
void import_alloc(Import *import, u32 site, u64 size, u64 usable);
// The newest block of the site; nothing if there is none.
void import_free(Import *import, u32 site, u32 flags);
// Allocates or frees so that this much is live.
void import_set_live(Import *import, u32 site, u64 bytes);
void import_keep_state(Import *import, StateReason reason, const char *label);

#endif
