// SPDX-License-Identifier: MIT
//
// The query, and what happens when rsp is loaded. General registers only, no libc.
//
// A context has at most CONTEXT_FRAMES_MAX frames: where one more would be too many, the
// outermost OUTER_FRAMES and the omission mark take the place of all above it. A recursion
// finds the same contexts again after each such fold.
#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"

enum {
    OUTER_FRAMES = 512,
    BATCH = 1024,             // new frames of one query; those above them are left out
    WALK_BYTES = 1 << 20,     // without a frame or a root: there is none
    FRESH_BYTES = 512,        // some tag is within these, of a stack that is resumed
    SAME_STACK_BYTES = 1 << 20,
};

// ------------------------------------------------------------------- contexts

static u32 intern(u32 parent, GuestAddr pc)
{
    u32 context = context_intern(parent, pc);
    // More threads than one may do so, with the same value.
    if (context != parent)
        __atomic_store_n(&calltags_depths[context], calltags_depths[parent] + 1, __ATOMIC_RELAXED);
    return context;
}

static u32 fold(u32 context, u32 depth)
{
    for (; depth > OUTER_FRAMES; depth--)
        context = context_parent(context);
    return intern(context, CONTEXT_OMITTED_PC);
}

static __attribute__((noinline)) u32 make_child(u32 parent, GuestAddr pc)
{
    u32 depth = calltags_depths[parent];
    return intern(depth < CONTEXT_FRAMES_MAX - 1 ? parent : fold(parent, depth), pc);
}

static inline u32 find_cached(ContextCache *cache, u32 parent, GuestAddr pc)
{
    size_t index = (pc ^ pc >> 10 ^ parent * 5ull) % ARRAY_LEN(cache->slots);
    if (LIKELY(cache->slots[index].pc == pc && cache->slots[index].parent == parent &&
               cache->slots[index].context))
        return cache->slots[index].context;
    u32 context = make_child(parent, pc);
    cache->slots[index].pc = pc;
    cache->slots[index].parent = parent;
    cache->slots[index].context = context;
    if (cache->fn)
        cache->fn(cache->arg, context);
    return context;
}

// ------------------------------------------------------------------- signals

#define SIGNAL_BIT 0x80000000u
enum { INTERRUPTIONS = 1024 }; // of all threads; older ones end the walk

typedef struct Interruption {
    GuestAddr slot; // of the handler's return address
    GuestAddr pc, sp;
} Interruption;
static Interruption interruptions[INTERRUPTIONS];
static u32 interruption_count; // atomic

void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp)
{
    if (slot >= CLIENT_END)
        return;
    u32 index = __atomic_fetch_add(&interruption_count, 1, __ATOMIC_RELAXED) % INTERRUPTIONS;
    interruptions[index] = (Interruption){slot, pc, sp};
    *calltags_word(slot) = SIGNAL_BIT | index;
}

static const Interruption *interruption_at(GuestAddr slot, u64 word)
{
    const Interruption *i = &interruptions[word % INTERRUPTIONS];
    return (u32)word & SIGNAL_BIT && i->slot == slot && i->sp < CLIENT_END ? i : NULL;
}

// ------------------------------------------------------------------- the walk

// A word of the client's stack; 0 if it is not there any more.
static inline u64 read_stack(GuestAddr slot)
{
    u64 word = 0;
    __asm__ volatile("1: mov (%1), %0\n2:\n" GUEST_FIXUP("1b", "2b") : "+r"(word) : "r"(slot));
    return word;
}

// The first word that is not 0, from `word` on; `end` or later: there is none. How many words
// a frame has cannot be predicted, so that a branch for each would be mispredicted once in
// every frame: SCAN of them are looked at together, which most frames do not exceed.
static inline const u64 *next_word(const u64 *word, const u64 *end)
{
    enum { SCAN = 8 };
    for (; word < end; word += SCAN) {
        u32 used = 0;
#pragma GCC unroll 8
        for (u32 i = 0; i < SCAN; i++)
            used |= (u32)(word[i] != 0) << i;
        if (LIKELY(used))
            return word + __builtin_ctz(used);
    }
    return end;
}

// The first word from `at` on that is a root or a frame; 0: there is none.
static inline GuestAddr find_frame(GuestAddr at, u64 *ret_word)
{
    const u64 *word = calltags_word(at), *end = word + WALK_BYTES / 8;
    for (;; word++) {
        word = next_word(word, end);
        if (word >= end)
            return 0;
        GuestAddr slot = (u64)word - CALLTAGS_OFFSET;
        if (*word == CALLTAG_ROOT || (u32)*word == calltag_of(read_stack(slot)) ||
            interruption_at(slot, *word)) {
            *ret_word = *word;
            return slot;
        }
    }
}

static __attribute__((noinline)) GuestAddr learn_frame(struct CallShape *shape, GuestAddr pc,
                                                       GuestAddr at, u64 *ret_word)
{
    GuestAddr slot = find_frame(at, ret_word);
    if (!slot)
        return 0;
    u64 up = slot - at;
    shape->up = shape->pc == pc && shape->up != up ? CALLTAGS_VARIES : up;
    shape->pc = pc;
    return slot;
}

// The same where `pc` is, with `at` as its stack pointer; usually known from the last time.
static inline GuestAddr next_frame(ContextCache *cache, GuestAddr pc, GuestAddr at, u64 *ret_word)
{
    struct CallShape *shape = &cache->shapes[(pc ^ pc >> 11) % ARRAY_LEN(cache->shapes)];
    if (LIKELY(shape->pc == pc && shape->up != CALLTAGS_VARIES)) {
        GuestAddr slot = at + shape->up;
        u64 word = *calltags_word(slot);
        if (LIKELY((u32)word == calltag_of(read_stack(slot)))) {
            *ret_word = word;
            return slot;
        }
    }
    return learn_frame(shape, pc, at, ret_word);
}

// The context of the frame at `slot`, whose word has none; and those of the new frames above.
static __attribute__((noinline)) u32 name_frames(GuestAddr slot, ContextCache *cache)
{
    GuestAddr slots[BATCH], pcs[BATCH];
    u64 word = *calltags_word(slot);
    u32 count = 0, context = 0;
    while (slot && count < BATCH) {
        const Interruption *i = interruption_at(slot, word);
        slots[count] = slot;
        pcs[count++] = i ? i->pc | CONTEXT_EXACT_PC : read_stack(slot);
        slot = i ? find_frame(i->sp, &word) : next_frame(cache, pcs[count - 1], slot + 8, &word);
        if (slot && (word == CALLTAG_ROOT || word >> 32))
            break;
    }
    if (slot && count < BATCH && word != CALLTAG_ROOT)
        context = (u32)(word >> 32);
    else if (slot && count == BATCH)
        context = intern(0, CONTEXT_OMITTED_PC);
    while (count-- > 0) {
        context = find_cached(cache, context, pcs[count]);
        u64 *at = calltags_word(slots[count]);
        *at = (u32)*at | (u64)context << 32;
    }
    return context;
}

u32 calltags_context(GuestAddr pc, u64 sp, ContextCache *cache, GuestAddr *ret_slot)
{
    u64 word = 0;
    u32 parent = 0;
    GuestAddr slot = sp < CLIENT_END ? next_frame(cache, pc, sp, &word) : 0;
    if (slot && word != CALLTAG_ROOT) {
        parent = (u32)(word >> 32);
        if (parent == 0)
            parent = name_frames(slot, cache);
        *ret_slot = slot;
    } else {
        *ret_slot = 0;
    }
    return find_cached(cache, parent, pc);
}

u32 calltags_context_once(GuestAddr pc, u64 sp)
{
    // Of all threads; who asks seldom can wait for it.
    static ContextCache cache;
    static Lock lock;
    GuestAddr slot;
    lock_acquire(&lock);
    u32 context = calltags_context(pc, sp, &cache, &slot);
    lock_release(&lock);
    return context;
}

// ------------------------------------------------------------------- loads of rsp

static bool has_root(GuestAddr start, GuestAddr end)
{
    for (const u64 *word = calltags_word(start); word < calltags_word(end); word++) {
        if (*word == CALLTAG_ROOT)
            return true;
    }
    return false;
}

static void begin_if_fresh(GuestAddr sp)
{
    for (GuestAddr at = sp; at < sp + FRESH_BYTES; at += 8) {
        u64 word = *calltags_word(at);
        if (word == CALLTAG_ROOT || (word && (u32)word == calltag_of(read_stack(at))))
            return;
    }
    *calltags_word(sp + 8) = CALLTAG_ROOT;
}

void calltags_load_sp(u64 old_sp, u64 new_sp)
{
    if (old_sp >= CLIENT_END || new_sp >= CLIENT_END - PAGE_SIZE)
        return;
    u64 up = new_sp - old_sp, down = old_sp - new_sp;
    if (up < SAME_STACK_BYTES && !has_root(old_sp, new_sp)) {
        for (u64 *word = calltags_word(old_sp); word < calltags_word(new_sp); word++)
            *word = 0;
    } else if (down > PAGE_SIZE) {
        begin_if_fresh(new_sp);
    }
}
