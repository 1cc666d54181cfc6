// SPDX-License-Identifier: MIT
//
// What a leak search looks at: the live blocks, and everything of the client's from
// which a pointer may come. That is the memory of roots.c and the registers of every
// thread; of all of it only what is addressable and defined.
#include "base/pages.h"
#include "base/prefetch.h"
#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/shadow/shadow.h"

// ------------------------------------------------------------------ registers

static void add_registers(ThreadCtx *ctx, void *data)
{
    LeakScene *scene = data;
    const MemcheckThread *mt = memcheck_thread(ctx);
    for (unsigned r = 0; mt && r < GPR_COUNT; r++) {
        u64 room = scene->word_room;
        if (definedness_of(ctx)->gpr[r] ||
            !leaks_grow(scene, (void **)&scene->words, scene->word_count, &scene->word_room, 8))
            continue;
        if (room != scene->word_room) {
            void *places = room ? pages_resize(scene->word_places, 4 * room, 4 * scene->word_room)
                                : pages_map(4 * scene->word_room);
            scene->failed |= !places;
            if (!places)
                return;
            scene->word_places = places;
        }
        scene->word_places[scene->word_count] = (u32)ctx->relay.number << 4 | r;
        scene->words[scene->word_count++] = ctx->gpr[r];
    }
}

// ------------------------------------------------------------------ blocks and contexts

static u64 frames_compared(void)
{
    switch (memcheck_options->leak_resolution) {
    case LEAK_RESOLUTION_LOW: return 2;
    case LEAK_RESOLUTION_MED: return 4;
    default: return memcheck_options->num_callers > 0 ? (u64)memcheck_options->num_callers : 1;
    }
}

// Contexts are one if their innermost frames agree. The table is by hash and holds the first
// context of each; it is only needed while keys are made.
typedef struct Keys {
    LeakScene *scene;
    u64 frames;
    u64 *hashes;
    u32 *firsts;
    u64 slots; // a power of two
} Keys;

enum { FRAMES_MAX = 512 };

static u64 hash_of_context(u32 context, u64 frames_wanted)
{
    GuestAddr frames[FRAMES_MAX];
    size_t count = context_frames(context, frames, FRAMES_MAX);
    u64 hash = 0x9e3779b97f4a7c15ull;
    count = min_u64(min_u64(count, FRAMES_MAX), frames_wanted);
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

static void set_key(Keys *keys, u32 context)
{
    LeakScene *scene = keys->scene;
    if (context >= scene->key_count || scene->keys[context])
        return;
    u64 hash = hash_of_context(context, keys->frames);
    u64 at = hash & (keys->slots - 1);
    while (keys->hashes[at] && keys->hashes[at] != hash)
        at = (at + 1) & (keys->slots - 1);
    if (!keys->hashes[at]) {
        keys->hashes[at] = hash;
        keys->firsts[at] = context;
    }
    scene->keys[context] = keys->firsts[at];
}

static void add_block(void *data, const HeapBlock *block)
{
    Keys *keys = data;
    if (!leak_list_add(&keys->scene->blocks, block->start, block->size_bytes,
                       block->alloc_context))
        keys->scene->failed = true;
    set_key(keys, block->alloc_context);
}

static bool add_blocks(LeakScene *scene)
{
    Keys keys = {.scene = scene, .frames = frames_compared(), .slots = 1024};
    HeapStats stats;
    heap_stats(&stats);
    scene->key_count = context_count();
    while (keys.slots < 2 * scene->key_count)
        keys.slots *= 2;
    scene->keys = pages_map((scene->key_count + 1) * sizeof(u32));
    keys.hashes = pages_map(keys.slots * sizeof(u64));
    keys.firsts = pages_map(keys.slots * sizeof(u32));
    bool ok = scene->keys && keys.hashes && keys.firsts &&
              leak_list_reserve(&scene->blocks, stats.live_blocks + 1);
    if (ok) {
        heap_fork_prepare(); // nobody is inside the heap now
        ok = heap_for_each_live(true, add_block, &keys);
        heap_fork_parent();
    }
    if (keys.hashes)
        pages_unmap(keys.hashes, keys.slots * sizeof(u64));
    if (keys.firsts)
        pages_unmap(keys.firsts, keys.slots * sizeof(u32));
    return ok;
}

// ------------------------------------------------------------------ for the search

static bool read_words(void *data, GuestAddr address, u32 count, u64 *ret_words)
{
    (void)data;
    if (!shadow_is_mapped(address, 8) || !guest_read(address, ret_words, 8ull * count))
        return false;
    const u64 *v = (const u64 *)shadow_of(address);
    for (u32 i = 0; i < count; i++) {
        if (v[i])
            ret_words[i] = 0;
    }
    return true;
}

static void prefetch(void *data, GuestAddr address)
{
    (void)data;
    prefetch_line((const void *)address);
    prefetch_line(shadow_of(address));
}

static bool is_vtable(void *data, GuestAddr value)
{
    const LeakScene *scene = data;
    u64 low = 0, high = scene->constant_count;
    while (low < high) {
        u64 middle = (low + high) / 2;
        if (scene->constants[middle].high <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < scene->constant_count && value >= scene->constants[low].low && value % 8 == 0;
}

static u32 context_key(void *data, u32 context)
{
    const LeakScene *scene = data;
    return context < scene->key_count ? scene->keys[context] : context;
}

static void run_workers(void *data, u32 workers, LeakWork *fn, void *argument)
{
    (void)data;
    thread_run_workers(workers, fn, argument);
}

// Threads are worth their making from some milliseconds of work on.
static u32 workers_for(const LeakScene *scene)
{
    enum { BLOCKS_MIN = 50000, ROOT_BYTES_MIN = 16 * MiB };
    u64 root_bytes = 0;
    for (u64 i = 0; i < scene->root_count; i++)
        root_bytes += scene->roots[i].high - scene->roots[i].low;
    if (scene->blocks.count < BLOCKS_MIN && root_bytes < ROOT_BYTES_MIN)
        return 1;
    return (u32)min_u64(thread_processors(), THREAD_WORKERS_MAX);
}

bool leaks_wants_holders(void)
{
    return memcheck_options->json_file != NULL;
}

u32 leaks_heuristic_bits(u32 options)
{
    static const u8 bits[][2] = {
        {HEURISTIC_STDSTRING, LEAK_STDSTRING},
        {HEURISTIC_LENGTH64, LEAK_LENGTH64},
        {HEURISTIC_NEWARRAY, LEAK_NEWARRAY},
        {HEURISTIC_MULTIPLE_INHERITANCE, LEAK_MULTIPLE_INHERITANCE},
    };
    u32 set = 0;
    for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
        if (options & bits[i][0])
            set |= LEAK_HEURISTIC_BIT(bits[i][1]);
    }
    return set;
}

bool leaks_scene_open(ToolThread *thread, u32 heuristics, LeakScene *ret_scene)
{
    (void)thread;
    LeakScene *scene = ret_scene;
    *scene = (LeakScene){0};
    if (!add_blocks(scene))
        scene->failed = true;
    leaks_add_roots(scene);
    tool_for_each_thread(add_registers, scene);
    if (scene->failed) {
        leaks_scene_close(scene);
        return false;
    }
    scene->input = (LeakInput){
        .blocks = scene->blocks.blocks,
        .block_count = scene->blocks.count,
        .roots = scene->roots,
        .root_count = scene->root_count,
        .coarse_roots = scene->coarse_roots,
        .words = scene->words,
        .word_count = scene->word_count,
        .heuristics = leaks_heuristic_bits(heuristics),
        .workers = workers_for(scene),
        .run_workers = run_workers,
        .wants_holders = leaks_wants_holders(),
        .data = scene,
        .read_words = read_words,
        .prefetch = prefetch,
        .is_vtable = is_vtable,
        .context_key = context_key,
    };
    return true;
}

void leaks_scene_close(LeakScene *scene)
{
    leak_list_free(&scene->blocks);
    if (scene->roots)
        pages_unmap(scene->roots, scene->root_room * sizeof(LeakRange));
    if (scene->root_places)
        pages_unmap(scene->root_places, scene->root_room * sizeof(LeakRootPlace));
    if (scene->names)
        pages_unmap(scene->names, scene->name_room);
    if (scene->constants)
        pages_unmap(scene->constants, scene->constant_room * sizeof(LeakRange));
    if (scene->words)
        pages_unmap(scene->words, scene->word_room * 8);
    if (scene->word_places)
        pages_unmap(scene->word_places, scene->word_room * 4);
    if (scene->keys)
        pages_unmap(scene->keys, (scene->key_count + 1) * sizeof(u32));
    *scene = (LeakScene){0};
}
