// SPDX-License-Identifier: MIT
//
// The calling-context tree: an array of nodes indexed by id, and a hash table
// of ids to find a child. Both only grow. Readers take no lock:
//   T1  A node is written before its id is released into the table.
//   T2  A table is complete before it is released as the current one; the old one stays
//       mapped for readers still in it. Its losses are harmless: a reader that misses
//       looks again under the lock. All old tables together are smaller than the current one.
//   T3  Slots go from 0 to an id once. An id whose pc was marked as unloaded stays in its slot,
//       where nobody looks for it by that pc; a larger table has it where its pc now leads.
// Compiled with general registers only; calls nothing but base/pages and base/futex_lock.
#include "base/assert.h"
#include "base/pages.h"
#include "engine/callstack/callstack.h"
#include "engine/callstack/context_tree.h"

#define NODES_STEP (1u << 14)       // opened at a time: 256 KiB
#define FIRST_TABLE_SLOTS (1u << 12)

typedef struct ChildTable {
    u64 slot_count; // a power of two
    u32 ids[];      // 0 is an empty slot
} ChildTable;

static Lock tree_lock;
ContextNode *context_nodes;  // written once, under tree_lock
u32 context_node_count = 1;  // under tree_lock; id 0 is the empty stack
static u32 open_nodes;     // under tree_lock
static ChildTable *table;  // released under tree_lock (T2)

Lock *context_tree_lock(void)
{
    return &tree_lock;
}

static u32 hash_child(u32 parent, GuestAddr pc)
{
    u64 mixed = (pc ^ (u64)parent << 40 ^ parent) * 0x9e3779b97f4a7c15ull;

    return (u32)((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

static u32 find_child(const ChildTable *t, u32 hash, u32 parent, GuestAddr pc)
{
    u64 mask = t->slot_count - 1;

    for (u64 slot = hash & mask;; slot = (slot + 1) & mask) {
        u32 id = __atomic_load_n(&t->ids[slot], __ATOMIC_ACQUIRE);
        if (id == 0)
            return 0;
        const ContextNode *node = &context_nodes[id];
        if (node->pc == pc && node->parent == parent)
            return id;
    }
}

static void insert_id(ChildTable *t, u32 hash, u32 id)
{
    u64 mask = t->slot_count - 1;
    u64 slot = hash & mask;

    while (t->ids[slot] != 0)
        slot = (slot + 1) & mask;
    __atomic_store_n(&t->ids[slot], id, __ATOMIC_RELEASE);
}

static bool grow_table(void)
{
    u64 slots = table ? table->slot_count * 2 : FIRST_TABLE_SLOTS;
    ChildTable *bigger = pages_map(sizeof(ChildTable) + slots * sizeof(u32));

    if (!bigger)
        return false;
    bigger->slot_count = slots;
    for (u32 id = 1; id < context_node_count; id++)
        insert_id(bigger, hash_child(context_nodes[id].parent, context_nodes[id].pc), id);
    __atomic_store_n(&table, bigger, __ATOMIC_RELEASE);
    return true;
}

static bool make_room(void)
{
    if (!context_nodes) {
        context_nodes = pages_reserve(CONTEXTS_MAX * sizeof(ContextNode));
        if (!context_nodes)
            return false;
    }
    if (context_node_count >= open_nodes) {
        if (open_nodes + NODES_STEP > CONTEXTS_MAX ||
            !pages_open(context_nodes + open_nodes, NODES_STEP * sizeof(ContextNode)))
            return false;
        open_nodes += NODES_STEP;
    }
    return (table && context_node_count < table->slot_count / 2) || grow_table();
}

static __attribute__((noinline)) u32 add_child(u32 hash, u32 parent, GuestAddr pc)
{
    lock_acquire(&tree_lock);
    u32 id = table ? find_child(table, hash, parent, pc) : 0;
    if (id == 0) {
        if (make_room()) {
            id = context_node_count;
            context_nodes[id] = (ContextNode){ pc, parent, context_nodes[parent].depth + 1 };
            __atomic_store_n(&context_node_count, id + 1, __ATOMIC_RELEASE);
            insert_id(table, hash, id);
        } else {
            id = parent;
        }
    }
    lock_release(&tree_lock);
    return id;
}

static u32 merge_max; // --merge-recursive-frames

void context_tree_merge(u32 frames)
{
    merge_max = frames;
}

// A frame that the stack has already, not farther out than the cycles that are merged: the round
// between is left out. 0: there is none.
static u32 merged_into(u32 parent, GuestAddr pc)
{
    for (u32 id = parent, i = 0; i < merge_max && id; i++, id = context_nodes[id].parent) {
        if (context_nodes[id].pc == pc && pc != CONTEXT_OMITTED_PC)
            return id;
    }
    return 0;
}

u32 context_find(u32 parent, GuestAddr pc)
{
    u32 merged = UNLIKELY(merge_max) ? merged_into(parent, pc) : 0;
    if (merged)
        return merged;
    const ChildTable *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

    return t ? find_child(t, hash_child(parent, pc), parent, pc) : 0;
}

u32 context_intern(u32 parent, GuestAddr pc)
{
    u32 id = context_find(parent, pc);

    return id != 0 ? id : add_child(hash_child(parent, pc), parent, pc);
}

void context_mark_unloaded(GuestAddr start, GuestAddr end, u32 unloading)
{
    u64 mark = (u64)unloading << CONTEXT_UNLOADING_SHIFT;

    lock_acquire(&tree_lock);
    for (u32 id = 1; id < context_node_count; id++) {
        // The return address behind a call at the very end is `end`.
        GuestAddr pc = context_nodes[id].pc & ~CONTEXT_EXACT_PC;
        if (pc >= start && pc <= end)
            __atomic_store_n(&context_nodes[id].pc, context_nodes[id].pc | mark, __ATOMIC_RELAXED);
    }
    lock_release(&tree_lock);
}

u32 context_count(void)
{
    return __atomic_load_n(&context_node_count, __ATOMIC_ACQUIRE);
}

u32 context_parent(u32 id)
{
    ASSERT(id < context_count());
    return id == 0 ? 0 : context_nodes[id].parent;
}

u32 context_depth(u32 id)
{
    ASSERT(id < context_count());
    return id == 0 ? 0 : context_nodes[id].depth;
}

GuestAddr context_pc(u32 id)
{
    ASSERT(id < context_count());
    return id == 0 ? 0 : context_nodes[id].pc;
}

size_t context_frames(u32 id, GuestAddr *out, size_t max)
{
    size_t count = 0;

    for (; id != 0; id = context_parent(id), count++) {
        if (count < max)
            out[count] = context_pc(id);
    }
    return count;
}
