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
    SAME_STACK_BYTES = 8 << 20,
};

// ------------------------------------------------------------------- contexts

static u32 fold(u32 context, u32 depth)
{
    for (; depth > OUTER_FRAMES; depth--)
        context = context_parent(context);
    return context_intern(context, CONTEXT_OMITTED_PC);
}

// A parent that is too deep has no children: one that is there is the right one.
static __attribute__((noinline)) u32 make_child(u32 parent, GuestAddr pc)
{
    u32 known = context_find(parent, pc);
    if (LIKELY(known))
        return known;
    u32 depth = context_depth(parent);
    return context_intern(depth < CONTEXT_FRAMES_MAX - 1 ? parent : fold(parent, depth), pc);
}

static inline u32 find_cached(ContextCache *cache, u32 parent, GuestAddr pc)
{
    if (context_next_is_child(parent, pc) && !cache->fn)
        return parent + 1;
    CachedContext *cached = &cache->slots[calltags_cache_index(pc, parent)];
    if (LIKELY(cached->pc == pc && cached->parent == parent && cached->context))
        return cached->context;
    u32 context = make_child(parent, pc);
    cached->pc = pc;
    cached->parent = parent;
    cached->context = context;
    if (cache->fn)
        cache->fn(cache->arg, context);
    return context;
}

// ------------------------------------------------------------------- signals

enum { INTERRUPTIONS = 1024 }; // of all threads, by slot; one may drive another out

typedef struct Interruption {
    GuestAddr slot; // of the handler's return address
    GuestAddr pc, sp;
} Interruption;
static Interruption interruptions[INTERRUPTIONS];

static Interruption *interruption_of(GuestAddr slot)
{
    return &interruptions[slot / 8 % INTERRUPTIONS];
}

void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp)
{
    if (slot >= CLIENT_END)
        return;
    *interruption_of(slot) = (Interruption){slot, pc, sp};
    *calltags_word(slot) = CALLTAG_SIGNAL;
}

static const Interruption *interruption_at(GuestAddr slot, u64 word)
{
    const Interruption *i = interruption_of(slot);
    return (u32)word == CALLTAG_SIGNAL && i->slot == slot && i->sp < CLIENT_END ? i : NULL;
}

// ------------------------------------------------------------------- the walk

// A word of the client's stack, or of its shadow; 0 if it is not there any more.
static inline u64 read_stack(GuestAddr slot)
{
    u64 word = 0;
    __asm__ volatile("1: mov (%1), %0\n2:\n" GUEST_FIXUP("1b", "2b") : "+r"(word) : "r"(slot));
    return word;
}

// Whether a word may be a tag or a signal's: most of what a tool has there is neither.
static inline bool may_count(u64 word)
{
    return ((u32)word & CALLTAG_FIXED) == CALLTAG_PATTERN;
}

static inline bool is_frame(GuestAddr slot, u64 word)
{
    return may_count(word) &&
           ((u32)word == calltag_of(read_stack(slot)) || interruption_at(slot, word));
}

bool calltags_is_tag(GuestAddr slot)
{
    return is_frame(slot, *calltags_word(slot));
}

// The first word that may count, from `word` on; `end` if there is none. How many words
// a frame has cannot be predicted, so that a branch for each would be mispredicted once in
// every frame: SCAN of them are looked at together, which most frames do not exceed.
static inline const u64 *next_word(const u64 *word, const u64 *end)
{
    enum { SCAN = 8 };
    for (; word + SCAN <= end; word += SCAN) {
        u32 used = 0;
#pragma GCC unroll 8
        for (u32 i = 0; i < SCAN; i++)
            used |= (u32)may_count(word[i]) << i;
        if (LIKELY(used))
            return word + __builtin_ctz(used);
    }
    while (word < end && !may_count(*word))
        word++;
    return word;
}

// The first frame from `at` on; 0: there is none.
static inline GuestAddr find_frame(GuestAddr at, u64 *ret_word)
{
    GuestAddr end = min_u64(calltags_root_above(at), at + WALK_BYTES);
    const u64 *word = calltags_word(at), *last_of_all = calltags_word(end);
    while (word < last_of_all) {
        if (UNLIKELY(!engine_can_read(word)))
            return 0;
        const u64 *last = (const u64 *)min_u64(PAGE_DOWN((u64)word) + PAGE_SIZE, (u64)last_of_all);
        for (;; word++) {
            word = next_word(word, last);
            if (word >= last)
                break;
            GuestAddr slot = (u64)word - calltags_offset;
            if (is_frame(slot, *word)) {
                *ret_word = *word;
                return slot;
            }
        }
    }
    return 0;
}

GuestAddr calltags_frame_slot(GuestAddr address)
{
    u64 word;
    return address < CLIENT_END ? find_frame(address, &word) : 0;
}

GuestAddr calltags_callee_slot(GuestAddr address, u64 sp)
{
    for (GuestAddr slot = (address & ~7ull) - 8; slot >= sp && slot < address; slot -= 8) {
        if (calltags_is_tag(slot))
            return slot;
    }
    return 0;
}

GuestAddr calltags_caller_pc(GuestAddr slot)
{
    const Interruption *i = interruption_at(slot, *calltags_word(slot));
    return i ? i->pc | CONTEXT_EXACT_PC : read_stack(slot);
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
        u64 word = read_stack((u64)calltags_word(slot)); // it may be beyond the stack
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
        if (slot && word >> 32)
            break;
    }
    if (slot && count < BATCH)
        context = (u32)(word >> 32);
    else if (slot && count == BATCH)
        context = context_intern(0, CONTEXT_OMITTED_PC);
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
    if (slot) {
        parent = (u32)(word >> 32);
        if (parent == 0)
            parent = name_frames(slot, cache);
        *ret_slot = slot;
    } else {
        *ret_slot = 0;
    }
    return find_cached(cache, parent, pc);
}

// ------------------------------------------------------------------- loads of rsp

static void begin_if_fresh(GuestAddr sp)
{
    u64 word;
    GuestAddr slot = find_frame(sp, &word);
    if (!slot || slot >= sp + FRESH_BYTES)
        calltags_add_root(sp + FRESH_BYTES / 2); // its first registers are popped yet
}

bool calltags_load_sp(u64 old_sp, u64 new_sp)
{
    if (old_sp >= CLIENT_END || new_sp >= CLIENT_END - PAGE_SIZE)
        return false;
    u64 up = new_sp - old_sp, down = old_sp - new_sp;
    if (up < SAME_STACK_BYTES && new_sp <= calltags_root_above(old_sp)) {
        for (u64 *word = calltags_word(old_sp); !calltags_shared && word < calltags_word(new_sp);
             word++)
            *word = 0;
        return true;
    }
    if (down > PAGE_SIZE)
        begin_if_fresh(new_sp);
    return false;
}
