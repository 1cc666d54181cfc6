// SPDX-License-Identifier: MIT
//
// One tree of all stacks is made once; each detailed snapshot fills it with its bytes and
// prints it. A node is a frame under a node; its key is the pc, as with the incumbent,
// and which of the functions inlined there it is.
#include "recording/massif_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

#define PPM 1000000ull

typedef struct Node {
    const RecordedFrame *frame; // NULL: only the pc is known; of the root: nothing is
    u64 pc;
    u64 bytes;       // of the snapshot at hand
    u32 parent;
    u32 first_child, next_sibling; // 0: none
    u32 first_site;  // the smallest below it: from then on the node exists
} Node;

typedef struct MassifTree {
    const MassifConfig *config;
    Vec nodes;      // [0] is the root
    Map children;   // hash of (parent, pc, level) → node
    u32 *node_of;   // by site
    FILE *file;
} MassifTree;

// ------------------------------------------------------------------ allocators

static const char *const allocators[] = {
#define ALLOCATOR(name) name,
#define PREFIX(text)
#include "recording/allocators.def"
};

static const char *const prefixes[] = {
#define ALLOCATOR(name)
#define PREFIX(text) text,
#include "recording/allocators.def"
};

bool massif_out_is_allocator(const char *function, const char *const *more, u32 more_count)
{
    if (!function)
        return false;
    for (u32 i = 0; i < more_count; i++) {
        if (strcmp(more[i], function) == 0)
            return true;
    }
    size_t length = strcspn(function, "@"); // a version is no part of the name
    for (size_t i = 0; i < ARRAY_LEN(allocators); i++) {
        if (strlen(allocators[i]) == length && memcmp(allocators[i], function, length) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (strncmp(prefixes[i], function, strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

// ------------------------------------------------------------------- the tree

static u64 child_key(u32 parent, u64 pc, u32 level)
{
    u64 key = (pc ^ (u64)level << 56) * 0x9e3779b97f4a7c15ull;
    return (key ^ key >> 29) + parent * 0xbf58476d1ce4e5b9ull;
}

static u32 child_of(MassifTree *tree, u32 parent, u64 pc, u32 level, const RecordedFrame *frame,
                    u32 site)
{
    u64 key = child_key(parent, pc, level), known;

    for (; map_get(&tree->children, key, &known); key++) {
        Node *node = vec_at(&tree->nodes, known);
        if (node->parent != parent || node->pc != pc || node->frame != frame)
            continue;
        if (site < node->first_site)
            node->first_site = site;
        return (u32)known;
    }
    Node node = {.frame = frame, .pc = pc, .parent = parent, .first_site = site};
    u32 number = (u32)tree->nodes.count;
    node.next_sibling = ((Node *)vec_at(&tree->nodes, parent))->first_child;
    if (!vec_push(&tree->nodes, &node))
        return parent;
    ((Node *)vec_at(&tree->nodes, parent))->first_child = number;
    map_put(&tree->children, key, number);
    return number;
}

static bool is_main(const RecordedFrame *frame)
{
    return frame && frame->function && strcmp(frame->function, "main") == 0;
}

typedef struct Walk {
    u32 node, depth, site;
    bool is_inside;  // of the allocating functions still
    bool is_done;
    const RecordedFrame *last; // of those left out
    u64 last_pc;
} Walk;

static void walk_frame(MassifTree *tree, Walk *walk, u64 pc, u32 level, const RecordedFrame *frame)
{
    const MassifConfig *config = tree->config;

    if (walk->is_inside && frame &&
        massif_out_is_allocator(frame->function, config->alloc_fns, config->alloc_fn_count)) {
        walk->last = frame;
        walk->last_pc = pc;
        return;
    }
    walk->is_inside = false;
    walk->node = child_of(tree, walk->node, pc, level, frame, walk->site);
    if (++walk->depth >= config->depth || (!config->show_below_main && is_main(frame)))
        walk->is_done = true;
}

// Where the bytes of a site are counted.
static u32 site_node(MassifTree *tree, u32 site)
{
    const MassifStacks *stacks = &tree->config->stacks;
    Walk walk = {.site = site, .is_inside = true};
    u32 context = stacks->context(stacks->arg, site);

    for (; context && !walk.is_done; context = stacks->parent(stacks->arg, context)) {
        u32 count = 0;
        const RecordedFrame *frames = stacks->frames(stacks->arg, context, &count);
        if (count == 0)
            walk_frame(tree, &walk, stacks->pc(stacks->arg, context), 0, NULL);
        for (u32 i = 0; i < count && !walk.is_done; i++)
            walk_frame(tree, &walk, frames[i].pc, i, &frames[i]);
    }
    if (walk.depth == 0) // nobody called: the innermost that there is, or nothing
        walk.node = child_of(tree, 0, walk.last_pc, 0, walk.last, site);
    return walk.node;
}

// A stack that ends where another goes on gets an entry of its own, so that the parts of
// every entry sum up to it.
static void end_stacks(MassifTree *tree, u32 site_count)
{
    for (u32 site = 0; site < site_count; site++) {
        u32 at = tree->node_of[site];
        if (at != UINT32_MAX && ((Node *)vec_at(&tree->nodes, at))->first_child)
            tree->node_of[site] = child_of(tree, at, 0, 99, NULL, site);
    }
}

static bool tree_make(MassifTree *tree, const MassifConfig *config, FILE *file)
{
    *tree = (MassifTree){.config = config, .file = file};
    vec_init(&tree->nodes, sizeof(Node));
    vec_push(&tree->nodes, NULL);
    tree->node_of = malloc((config->site_count + 1) * sizeof(u32));
    if (!tree->node_of || tree->nodes.count == 0)
        return false;
    memset(tree->node_of, 0xff, config->site_count * sizeof(u32));
    return true;
}

static void tree_free(MassifTree *tree)
{
    vec_free(&tree->nodes);
    map_free(&tree->children);
    free(tree->node_of);
}

// -------------------------------------------------------------------- printing

// Names may have any byte, paths above all, but this is a file of lines.
static void put_name(FILE *file, const char *name)
{
    if (!strpbrk(name, "\n\r")) {
        fputs(name, file);
        return;
    }
    for (const char *c = name; *c; c++) {
        if (*c == '\n')
            fputs("\\n", file);
        else if (*c == '\r')
            fputs("\\r", file);
        else
            fputc(*c, file);
    }
}

static void put_label(FILE *file, const Node *node)
{
    const RecordedFrame *frame = node->frame;

    fprintf(file, "0x%" PRIX64 ": ", node->pc);
    put_name(file, frame && frame->function ? frame->function : "???");
    if (frame && frame->file && frame->line) {
        fputs(" (", file);
        put_name(file, frame->file);
        fprintf(file, ":%u)", frame->line);
    } else if (frame && frame->object) {
        fputs(" (in ", file);
        put_name(file, frame->object);
        fputc(')', file);
    }
    fputc('\n', file);
}

static int compare_nodes(const void *a, const void *b, void *arg)
{
    const Vec *nodes = arg;
    const Node *x = vec_at(nodes, *(const u32 *)a), *y = vec_at(nodes, *(const u32 *)b);
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return *(const u32 *)a < *(const u32 *)b ? -1 : 1;
}

typedef struct Printing {
    MassifTree *tree;
    u64 total;
    u32 site_count;
} Printing;

static bool is_large(const Printing *printing, u64 bytes)
{
    return bytes * PPM >= printing->total * printing->tree->config->threshold_ppm;
}

static void put_small(const Printing *printing, u32 level, u64 bytes, u32 count)
{
    fprintf(printing->tree->file, "%*sn0: %" PRIu64 " in %u place%s below massif's threshold "
            "(%.2f%%)\n", (int)level, "", bytes, count, count == 1 ? "," : "s, all",
            (double)printing->tree->config->threshold_ppm / 10000.0);
}

// The children of a node, as they are printed.
typedef struct Children {
    u32 *large; // largest first
    u32 large_count, small_count;
    u64 small_bytes;
} Children;

static Children gather(const Printing *printing, u32 parent)
{
    const Vec *nodes = &printing->tree->nodes;
    u32 first = ((Node *)vec_at(nodes, parent))->first_child, room = 0;
    Children children = {0};

    for (u32 c = first; c; c = ((Node *)vec_at(nodes, c))->next_sibling) {
        const Node *child = vec_at(nodes, c);
        if (child->first_site >= printing->site_count)
            continue;
        if (!is_large(printing, child->bytes)) {
            children.small_count++;
            children.small_bytes += child->bytes;
            continue;
        }
        if (children.large_count == room) {
            room = room ? room * 2 : 4;
            u32 *larger = realloc(children.large, room * sizeof(u32));
            if (!larger)
                break;
            children.large = larger;
        }
        children.large[children.large_count++] = c;
    }
    if (children.large_count > 1)
        qsort_r(children.large, children.large_count, sizeof(u32), compare_nodes, (void *)nodes);
    return children;
}

static void put_node(const Printing *printing, u32 number, u32 level)
{
    FILE *file = printing->tree->file;
    const Vec *nodes = &printing->tree->nodes;
    const Node *node = vec_at(nodes, number);
    Children children = gather(printing, number);
    bool has_small = children.small_count > 0;

    fprintf(file, "%*sn%u: %" PRIu64 " ", (int)level, "", children.large_count + has_small,
            node->bytes);
    if (number == 0)
        fputs(printing->tree->config->pages_as_heap
                  ? "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.\n"
                  : "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n",
              file);
    else
        put_label(file, node);
    // The sum of the small ones stands where its size puts it.
    for (u32 i = 0; i < children.large_count; i++) {
        u64 bytes = ((Node *)vec_at(nodes, children.large[i]))->bytes;
        if (has_small && bytes < children.small_bytes) {
            put_small(printing, level + 1, children.small_bytes, children.small_count);
            has_small = false;
        }
        put_node(printing, children.large[i], level + 1);
    }
    if (has_small)
        put_small(printing, level + 1, children.small_bytes, children.small_count);
    free(children.large);
}

static void put_tree(MassifTree *tree, const MassifSnapshot *snapshot)
{
    Printing printing = {
        .tree = tree,
        .total = snapshot->heap_bytes + snapshot->extra_bytes + snapshot->stack_bytes,
        .site_count = snapshot->site_count,
    };

    for (size_t i = 0; i < tree->nodes.count; i++)
        ((Node *)vec_at(&tree->nodes, i))->bytes = 0;
    for (u32 i = 0; i < snapshot->live_count; i++) {
        u32 at = tree->node_of[snapshot->sites[i]];
        for (;; at = ((Node *)vec_at(&tree->nodes, at))->parent) {
            ((Node *)vec_at(&tree->nodes, at))->bytes += snapshot->bytes[i];
            if (at == 0)
                break;
        }
    }
    put_node(&printing, 0, 0);
}

static void put_snapshot(MassifTree *tree, const MassifSnapshot *snapshot, size_t number)
{
    fprintf(tree->file,
            "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
            "\nmem_heap_extra_B=%" PRIu64 "\nmem_stacks_B=%" PRIu64 "\nheap_tree=%s\n",
            number, snapshot->time, snapshot->heap_bytes, snapshot->extra_bytes,
            snapshot->stack_bytes,
            snapshot->is_peak       ? "peak"
            : snapshot->is_detailed ? "detailed"
                                    : "empty");
    if (snapshot->is_peak || snapshot->is_detailed)
        put_tree(tree, snapshot);
}

// Only stacks that are shown are looked up: names cost.
static void place_sites(MassifTree *tree, const MassifSnapshot *snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (u32 j = 0; j < snapshots[i].live_count; j++) {
            u32 site = snapshots[i].sites[j];
            if (tree->node_of[site] == UINT32_MAX)
                tree->node_of[site] = site_node(tree, site);
        }
    }
    end_stacks(tree, tree->config->site_count);
}

u64 massif_out_time(const char *unit, const Moment *moment)
{
    if (strcmp(unit, "B") == 0)
        return moment->allocated_bytes;
    return strcmp(unit, "ms") == 0 ? moment->ns / 1000000 : moment->instructions;
}

void massif_out_write(FILE *file, const MassifConfig *config, const MassifSnapshot *snapshots,
                      size_t count)
{
    MassifTree tree;

    fprintf(file, "desc: %s\ncmd: %s\ntime_unit: %s\n",
            config->options && *config->options ? config->options : "(none)", config->command,
            config->time_unit);
    if (tree_make(&tree, config, file)) {
        place_sites(&tree, snapshots, count);
        for (size_t i = 0; i < count; i++)
            put_snapshot(&tree, &snapshots[i], i);
    }
    tree_free(&tree);
}
