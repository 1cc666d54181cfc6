// SPDX-License-Identifier: MIT
//
// Files of other programs that hold memory profiles.
//
// A file is read whole, decompressed by what its first bytes say, and parsed into a
// model that points into its text. What is broken ends the parsing, not the program:
// everything before it is kept and one line says where it ended.
#ifndef MUNINN_INSPECT_FOREIGN_FOREIGN_H
#define MUNINN_INSPECT_FOREIGN_FOREIGN_H

#include "base/types.h"
#include "recording/recording.h"

// ------------------------------------------------------------------ recordings

// As recording_open(), and also of a foreign profile: it is made a recording in a temporary file,
// which nobody else sees and which is gone with the process. What such a file cannot know is told
// to `warn`. RecordingInfo.tool is its kind.
//
//   "massif.out"  snapshots. Totals are exact at each; where there is no tree, what is more than
//                 in the tree before is "[since the last detailed snapshot]", and what is less
//                 is taken from all alike. An instruction is a nanosecond, a byte a microsecond.
//   "heaptrack"   every event; one thread; addresses are made up
//   "pprof"       one moment; blocks have the mean size of their stack
Recording *foreign_open(const char *path, RecordingWarnFn *warn, void *arg, char **ret_error);
// Whether a recording with this RecordingInfo.tool was made of a foreign file. NULL: it was not.
bool foreign_is_kind(const char *tool);
enum { UNIT_INSTRUCTIONS, UNIT_MS, UNIT_BYTES }; // RecordingInfo.time_unit

// ----------------------------------------------------------------------- files

typedef struct ForeignText {
    char *data; // size bytes and a zero
    size_t size;
    const char *problem; // NULL, or why the end of it is missing: damaged compression
} ForeignText;

// Plain, gzip or zstd; "-" is standard input. False: *ret_error (to be freed) says why.
bool foreign_read(const char *path, ForeignText *ret_text, char **ret_error);
void foreign_free(ForeignText *text);
// A recording, or a profile other than massif.out: one for foreign_open().
bool foreign_is_recordable(const ForeignText *text);

// ------------------------------------------------------------------ massif.out

typedef enum MassifTree {
    MASSIF_TREE_EMPTY, // a normal snapshot: sizes only
    MASSIF_TREE_DETAILED,
    MASSIF_TREE_PEAK,
} MassifTree;

// A node and its subtree lie together: children follow their parent.
typedef struct MassifNode {
    u64 bytes;
    const char *label; // "0x1091A6: main (ex.c:4)"
    u32 depth;         // 0: the root
    u32 end;           // the first node behind its subtree
} MassifNode;

typedef struct MassifFileSnapshot {
    u64 number; // as the file has it
    u64 time;
    u64 heap_bytes, extra_bytes, stacks_bytes;
    MassifTree tree;
    u32 first_node, node_count; // in nodes; 0 nodes: it has no tree
} MassifFileSnapshot;

typedef struct MassifFile {
    const char *arguments; // massif's own
    const char *command;
    const char *time_unit; // "i", "ms" or "B"
    MassifFileSnapshot *snapshots;
    MassifNode *nodes;
    u32 snapshot_count, node_count;
    char *problem; // NULL: none; a line that says what could not be read, with its place
    ForeignText text;
} MassifFile;

bool massif_file_is(const ForeignText *text);
// Takes the text over, also when it fails. NULL: no snapshot could be read; *ret_error (to be
// freed) says why.
MassifFile *massif_file_parse(ForeignText *text, char **ret_error);
void massif_file_free(MassifFile *file);

#endif
