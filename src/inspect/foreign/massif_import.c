// SPDX-License-Identifier: MIT
//
// massif.out into a recording. A path of its tree is a stack, innermost at the root; the stacks
// of a snapshot and their bytes are what is live then, and what changes from one snapshot to the
// next has been allocated or freed between.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/foreign/import.h"

static const char below_threshold[] = "[below massif's threshold]";
static const char overhead[] = "[what the allocator adds]";
static const char since_detailed[] = "[since the last detailed snapshot]";

typedef struct MassifImport {
    Import *import;
    const MassifFile *file;
    u64 *wanted;      // live bytes by site, of the snapshot at hand
    u32 wanted_room;
    u32 *path;        // nodes from the root to the one at hand
    u32 path_room;
} MassifImport;

// ------------------------------------------------------------------------ labels

// "0x1091A6: main (ex.c:4)", "0x4A0: ??? (in /lib/x.so)". The texts are cut out of `copy`.
static RecordedFrame parse_label(char *copy)
{
    RecordedFrame frame = {0};
    char *text = copy;

    if (strncmp(text, "0x", 2) == 0) {
        frame.pc = strtoull(text, &text, 16);
        text += strspn(text, ": ");
    }
    char *open = strrchr(text, '('), *close = open ? strchr(open, ')') : NULL;
    if (close && close[1] == '\0' && open > text && open[-1] == ' ') {
        char *colon = strrchr(open, ':');
        open[-1] = *close = '\0';
        if (strncmp(open, "(in ", 4) == 0) {
            frame.object = open + 4;
        } else if (colon && colon[1]) {
            *colon = '\0';
            frame.file = open + 1;
            frame.line = (u32)strtoul(colon + 1, NULL, 10);
        }
    }
    frame.function = strcmp(text, "???") == 0 ? NULL : text;
    return frame;
}

static u32 context_of(Import *import, u32 parent, const char *label)
{
    bool is_sum = strncmp(label, "in ", 3) == 0 && strstr(label, "threshold");
    char *copy = strdup(is_sum ? below_threshold : label);

    if (!copy)
        return parent;
    RecordedFrame frame = parse_label(copy);
    u32 context = import_context(import, parent, is_sum ? below_threshold : label, &frame);
    free(copy);
    return context;
}

// --------------------------------------------------------------------- snapshots

static void add_wanted(MassifImport *massif, u32 site, u64 bytes)
{
    if (site >= massif->wanted_room) {
        u32 room = (site + 1) * 2;
        u64 *larger = realloc(massif->wanted, room * sizeof(u64));
        if (!larger) {
            massif->import->failed = true;
            return;
        }
        memset(larger + massif->wanted_room, 0, (room - massif->wanted_room) * sizeof(u64));
        massif->wanted = larger;
        massif->wanted_room = room;
    }
    saturate_grow_u64(&massif->wanted[site], bytes);
}

static u64 wanted_of(const MassifImport *massif, u32 site)
{
    return site < massif->wanted_room ? massif->wanted[site] : 0;
}

// A stack from the outermost frame in: the path backwards, without the root.
static u32 context_of_path(MassifImport *massif, u32 depth)
{
    u32 context = 0;

    for (u32 d = depth; d > 0; d--)
        context = context_of(massif->import, context, massif->file->nodes[massif->path[d]].label);
    return context;
}

static bool make_path_room(MassifImport *massif, u32 depth)
{
    if (depth < massif->path_room)
        return true;
    u32 room = (depth + 1) * 2;
    u32 *larger = realloc(massif->path, room * sizeof(u32));
    if (!larger)
        return false;
    massif->path = larger;
    massif->path_room = room;
    return true;
}

// What each stack of the tree has of its own: in whole files only leaves have anything.
static void want_tree(MassifImport *massif, const MassifFileSnapshot *snapshot)
{
    const MassifNode *nodes = massif->file->nodes;

    for (u32 i = snapshot->first_node; i < snapshot->first_node + snapshot->node_count; i++) {
        u64 below = 0;
        if (!make_path_room(massif, nodes[i].depth)) {
            massif->import->failed = true;
            return;
        }
        massif->path[nodes[i].depth] = i;
        for (u32 c = i + 1; c < nodes[i].end; c = nodes[c].end)
            saturate_grow_u64(&below, nodes[c].bytes);
        if (nodes[i].bytes <= below)
            continue;
        u32 context = context_of_path(massif, nodes[i].depth);
        add_wanted(massif, import_site(massif->import, SPACE_HEAP, context),
                   nodes[i].bytes - below);
    }
}

// Without a tree: what is live stays, with more in an entry of its own, or less in all alike.
static void want_total(MassifImport *massif, u64 total)
{
    Import *import = massif->import;
    u32 rest = import_site(import, SPACE_HEAP, context_of(import, 0, since_detailed));
    u64 known = 0;

    for (u32 i = 0; i < import->site_count; i++) {
        if (import->sites[i].space == SPACE_HEAP && i != rest)
            saturate_grow_u64(&known, import->sites[i].live_bytes);
    }
    double share = known > total ? (double)total / (double)known : 1;
    for (u32 i = 0; i < import->site_count; i++) {
        if (import->sites[i].space == SPACE_HEAP && i != rest)
            add_wanted(massif, i, (u64)((double)import->sites[i].live_bytes * share));
    }
    if (total > known)
        add_wanted(massif, rest, total - known);
}

static Moment moment_of(const MassifFile *file, u64 time)
{
    time = min_u64(time, UINT64_MAX / 1000000 / 4);
    if (strcmp(file->time_unit, "ms") == 0)
        return (Moment){.ns = time * 1000000};
    if (strcmp(file->time_unit, "i") == 0)
        return (Moment){.ns = time, .instructions = time};
    return (Moment){.ns = time * 1000, .allocated_bytes = time};
}

// A block of no size at all, of which so much is usable.
static void set_overhead(Import *import, u64 bytes)
{
    u32 site = import_site(import, SPACE_HEAP, context_of(import, 0, overhead));

    if (import->failed || import->sites[site].live_usable == bytes)
        return;
    import_free(import, site, 0);
    if (bytes > 0)
        import_alloc(import, site, 0, bytes);
}

static void import_snapshot(MassifImport *massif, u32 index, bool is_peak)
{
    Import *import = massif->import;
    const MassifFileSnapshot *snapshot = &massif->file->snapshots[index];
    Moment moment = moment_of(massif->file, snapshot->time);
    char label[48];

    if (moment.ns >= import->now.ns)
        import->now = moment;
    if (massif->wanted)
        memset(massif->wanted, 0, massif->wanted_room * sizeof(u64));
    if (snapshot->node_count > 0)
        want_tree(massif, snapshot);
    else
        want_total(massif, snapshot->heap_bytes);
    if (snapshot->stacks_bytes > 0)
        add_wanted(massif, import_site(import, SPACE_STACK, 0), snapshot->stacks_bytes);
    // First what goes: a moment has no more than the larger of the two around it.
    for (u32 i = 0; i < import->site_count; i++) {
        if (wanted_of(massif, i) < import->sites[i].live_bytes)
            import_set_live(import, i, wanted_of(massif, i));
    }
    for (u32 i = 0; i < import->site_count; i++)
        import_set_live(import, i, wanted_of(massif, i));
    set_overhead(import, snapshot->extra_bytes);
    recording_close_slice(import->writer, &import->now);
    snprintf(label, sizeof(label), "snapshot %llu", (unsigned long long)snapshot->number);
    if (is_peak || snapshot->node_count > 0)
        import_keep_state(import, is_peak ? STATE_PEAK : STATE_PERIODIC, label);
}

// The one that says so, else the largest.
static u32 find_peak(const MassifFile *file)
{
    u64 most = 0;
    u32 peak = 0;

    for (u32 i = 0; i < file->snapshot_count; i++) {
        const MassifFileSnapshot *snapshot = &file->snapshots[i];
        u64 total = snapshot->heap_bytes + snapshot->extra_bytes + snapshot->stacks_bytes;
        if (snapshot->tree == MASSIF_TREE_PEAK)
            return i;
        if (total > most) {
            most = total;
            peak = i;
        }
    }
    return peak;
}

bool import_massif(Import *import, ForeignText *text, char **ret_error)
{
    MassifFile *file = massif_file_parse(text, ret_error);
    MassifImport massif = {.import = import, .file = file};

    if (!file)
        return false;
    bool is_i = strcmp(file->time_unit, "i") == 0, is_ms = strcmp(file->time_unit, "ms") == 0;
    RecordingInfo info = {
        .tool = "massif.out", .command = file->command, .options = file->arguments,
        .counts_instructions = is_i, .has_stacks = true, .depth = 30,
        .time_unit = is_i ? UNIT_INSTRUCTIONS : is_ms ? UNIT_MS : UNIT_BYTES};
    bool is_begun = import_begin(import, &info, ret_error);
    if (is_begun && file->problem)
        import_warn(import, "%s", file->problem);
    if (is_begun && !is_ms)
        import_warn(import, "its times are %s: where seconds stand, a %s of them is one",
                    is_i ? "instructions" : "bytes", is_i ? "billion" : "million");
    u32 peak = find_peak(file);
    for (u32 i = 0; is_begun && i < file->snapshot_count; i++)
        import_snapshot(&massif, i, i == peak);
    free(massif.wanted);
    free(massif.path);
    massif_file_free(file);
    return is_begun;
}
