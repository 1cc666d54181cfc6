// SPDX-License-Identifier: MIT
//
// The query, and what happens when rsp is loaded. General registers only, no libc.
//
// A context has at most CONTEXT_FRAMES_MAX frames: where one more would be too many, the
// outermost OUTER_FRAMES and the omission mark take the place of all above it. A recursion
// finds the same contexts again after each such fold.
#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"

enum {
    OUTER_FRAMES = 512,
    BATCH = 1024,             // new frames of one query; those above them are left out
    NEAR_BYTES = 1 << 20,     // few frames are larger
    FAR_MISSES = 64,          // walks up to CALLTAGS_FRAME_MAX for nothing
    FRESH_BYTES = 512,        // some tag is within these, of a stack that is resumed
    CALLEE_BYTES = 512,       // from the stack pointer of a frame down to a call: arguments
    INTERRUPTED_BYTES = 16 << 10, // the kernel's frame for a handler, with the vector state
    SAME_STACK_BYTES = 1 << 30,
    SIGNAL_FRAME_MAX = 64 << 10, // the handler is on an alternate stack if it is further away
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
    // Two things that may not be in the processor's cache are fetched at once.
    CachedContext *cached = &cache->slots[calltags_cache_index(pc, parent)];
    __builtin_prefetch(cached);
    if (!cache->fn && context_next_is_child(parent, pc))
        return parent + 1;
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

static const Interruption *interruption_at(GuestAddr slot, u64 word)
{
    const Interruption *i = interruption_of(slot);
    return (u32)word == CALLTAG_SIGNAL && i->slot == slot && i->sp < CLIENT_END ? i : NULL;
}

// ------------------------------------------------------------------- the walk

static inline bool may_count(u64 word)
{
    return calltag_is_likely((u32)word);
}

static inline bool is_frame(GuestAddr slot, u64 word)
{
    return may_count(word) &&
           (calltag_fits((u32)word, calltags_read(slot)) || interruption_at(slot, word));
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

// The first frame from `at` on and below `end`; 0: there is none.
static inline GuestAddr find_frame_below(GuestAddr end, GuestAddr at, u64 *ret_word)
{
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

static u32 far_misses; // of all threads, one after the other

// A frame with a large array, or else this is a stack whose end nobody knows: then each walk would
// be for nothing, milliseconds long, and after some of them none is made.
static __attribute__((noinline)) GuestAddr find_far_frame(GuestAddr end, GuestAddr at,
                                                          u64 *ret_word)
{
    u32 misses = __atomic_load_n(&far_misses, __ATOMIC_RELAXED);
    if (misses >= FAR_MISSES)
        return 0;
    GuestAddr slot = find_frame_below(min_u64(end, at + CALLTAGS_FRAME_MAX), at, ret_word);
    __atomic_store_n(&far_misses, slot ? 0 : misses + 1, __ATOMIC_RELAXED);
    return slot;
}

// The first frame from `at` on; 0: there is none.
static inline GuestAddr find_frame(GuestAddr at, u64 *ret_word)
{
    GuestAddr root = calltags_root_above(at), near = at + NEAR_BYTES;
    GuestAddr slot = find_frame_below(min_u64(root, near), at, ret_word);
    return LIKELY(slot || root <= near) ? slot : find_far_frame(root, at, ret_word);
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
    return i ? i->pc | CONTEXT_EXACT_PC : calltags_read(slot);
}

static __attribute__((noinline)) GuestAddr learn_frame(struct CallShape *shape, GuestAddr pc,
                                                       GuestAddr at, u64 *ret_word)
{
    GuestAddr slot = find_frame(at, ret_word);
    if (!slot)
        return 0;
    u64 up = slot - at;
    bool varies = calltags_is_elastic(pc) || (shape->pc == pc && shape->up != up);
    shape->up = varies ? CALLTAGS_VARIES : up;
    shape->pc = pc;
    return slot;
}

static inline GuestAddr next_frame(ContextCache *cache, GuestAddr pc, GuestAddr at, u64 *ret_word)
{
    GuestAddr slot = calltags_known_frame(cache, pc, at, ret_word);
    return LIKELY(slot) ? slot : learn_frame(calltags_shape(cache, pc), pc, at, ret_word);
}

GuestAddr calltags_next_frame(ContextCache *cache, u64 pc, GuestAddr at, u64 *ret_word)
{
    return next_frame(cache, pc, at, ret_word);
}

// Frames of one query, from the innermost on, up to one whose context is known.
typedef struct Walk {
    u32 count;
    bool is_interrupted; // by a signal: what is above is elsewhere
    GuestAddr known; // the slot of that one, 0: there is none
    u64 known_word;
    GuestAddr slots[BATCH], to[BATCH];
} Walk;

static inline void walk_up(Walk *walk, GuestAddr slot, ContextCache *cache)
{
    u64 word = *calltags_word(slot);
    u32 count = 0;
    walk->is_interrupted = false;
    do {
        const Interruption *i = interruption_at(slot, word);
        GuestAddr to = i ? i->pc | CONTEXT_EXACT_PC : calltags_read(slot);
        walk->slots[count] = slot;
        walk->to[count++] = to;
        walk->is_interrupted |= i != NULL;
        slot = i ? find_frame(i->sp, &word) : next_frame(cache, to, slot + 8, &word);
    } while (slot && !(word >> 32) && count < BATCH);
    walk->count = count;
    walk->known = slot;
    walk->known_word = word;
}

// Without frames it never holds.
static void note_chain(CallChain *chain, const Walk *walk)
{
    u32 count = walk->count;
    chain->above = walk->slots[0];
    chain->word_above = *calltags_word(chain->above);
    chain->count = 0;
    if (walk->is_interrupted || count >= ARRAY_LEN(chain->frames))
        return;
    for (u32 i = 0; i < count; i++) {
        if (calltags_is_elastic(walk->to[i]))
            return;
        chain->frames[i].slot = walk->slots[i];
        chain->frames[i].to = walk->to[i];
        chain->frames[i].word = *calltags_word(walk->slots[i]);
    }
    if (walk->known) {
        chain->frames[count].slot = walk->known;
        chain->frames[count++].word = walk->known_word;
    }
    chain->count = count;
}

// The context of the frame at `slot`, whose word has none; and those of the new frames above.
static __attribute__((noinline)) u32 name_frames(GuestAddr slot, ContextCache *cache,
                                                 CallChain *chain)
{
    Walk walk;
    walk_up(&walk, slot, cache);
    u32 context = (u32)(walk.known_word >> 32);
    if (!walk.known)
        context = 0;
    else if (!context) // BATCH is too few
        context = context_intern(0, CONTEXT_OMITTED_PC);
    for (u32 i = walk.count; i-- > 0;) {
        context = find_cached(cache, context, walk.to[i]);
        u64 *at = calltags_word(walk.slots[i]);
        *at = (u32)*at | (u64)context << 32;
    }
    if (chain)
        note_chain(chain, &walk);
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
            parent = name_frames(slot, cache, NULL);
        *ret_slot = slot;
    } else {
        *ret_slot = 0;
    }
    return find_cached(cache, parent, pc);
}

// ------------------------------------------------------------------- calls that come again

// Where it holds, all its frames have their contexts now. That two frames follow each other again,
// if both are where they were, is what the walk by shapes takes for granted too.
static bool chain_holds(const CallChain *chain)
{
    if (!calltags_is_call(chain->sp, chain->to))
        return false;
    u32 i = 0;
    for (;; i++) {
        if (i == chain->count)
            return false;
        GuestAddr slot = chain->frames[i].slot;
        u64 word = calltags_read((u64)calltags_word(slot));
        if (word == chain->frames[i].word)
            break;
        if (word != (u32)chain->frames[i].word || calltags_read(slot) != chain->frames[i].to)
            return false;
    }
    while (i-- > 0)
        *calltags_word(chain->frames[i].slot) = chain->frames[i].word;
    return true;
}

u32 calltags_call_context(GuestAddr pc, u64 sp, ContextCache *cache)
{
    GuestAddr to = sp < CLIENT_END ? calltags_read(sp) : 0, above = 0;
    CallChain *chain = calltags_chain(cache, pc, sp, to);
    if (chain->pc == pc && chain->sp == sp && chain_holds(chain))
        return chain->context;
    u64 word;
    if (LIKELY(to && sp % 8 == 0 && calltags_is_call(sp, to)))
        above = next_frame(cache, to, sp + 8, &word);
    if (UNLIKELY(!above)) // it was jumped to, or is the outermost
        return calltags_context(pc, sp, cache, &above);
    u32 parent = (u32)(word >> 32);
    if (parent) {
        chain->above = above;
        chain->word_above = word;
        chain->count = 0;
    } else {
        parent = name_frames(above, cache, chain);
    }
    chain->pc = calltags_is_elastic(to) ? 0 : pc;
    chain->sp = sp;
    chain->to = to;
    chain->context = find_cached(cache, find_cached(cache, parent, to), pc);
    return chain->context;
}

// ------------------------------------------------------------------- loads of rsp

// The highest word with a tag in [low, high), both aligned; 0: there is none.
static GuestAddr highest_tag_below(GuestAddr high, GuestAddr low)
{
    for (GuestAddr slot = high; slot > low;) {
        slot -= 8;
        bool enters_page = ((u64)calltags_word(slot) & (PAGE_SIZE - 1)) == PAGE_SIZE - 8;
        if (UNLIKELY(enters_page || slot == high - 8) && !engine_can_read(calltags_word(slot)))
            return 0;
        if (UNLIKELY(calltags_is_tag(slot)))
            return slot;
    }
    return 0;
}

bool calltags_has_called(u64 sp, u64 low)
{
    GuestAddr high = sp & ~7ull;
    if (sp >= CLIENT_END || low >= high)
        return false;
    GuestAddr near = high - min_u64(high - low, INTERRUPTED_BYTES) + 7;
    GuestAddr slot = highest_tag_below(high, near & ~7ull);
    const Interruption *i = slot ? interruption_at(slot, *calltags_word(slot)) : NULL;
    return i ? i->sp - (sp - CALLEE_BYTES) < 2 * CALLEE_BYTES : slot && sp - slot <= CALLEE_BYTES;
}

// A stack that is gone on with was left by a call: its return address stands above the stack
// pointer, or below it if a jump undoes the call.
static void begin_if_fresh(GuestAddr sp)
{
    u64 word;
    GuestAddr end = min_u64(calltags_root_above(sp), sp + FRESH_BYTES);
    u64 low = sp - min_u64(sp, CALLEE_BYTES);
    if (!find_frame_below(end, sp, &word) && !calltags_has_called(sp, low))
        calltags_add_root(sp + FRESH_BYTES / 2); // its first registers are popped yet
}

// Frames are left when the frame that is gone on with has called others. If no frame in between has
// called any, it is memory that a frame has taken for itself and gives back. All else is another
// stack, be it one in a live frame of this one.
//
// Unwinders write the address that they go on at over the return address, and return to it. Right
// below stands what a frame has saved; of a stack that nobody has used nothing is known there.
static bool leaves_frames(u64 old_sp, u64 new_sp, bool returns)
{
    u64 word;
    return new_sp - old_sp <= CALLEE_BYTES || calltags_has_called(new_sp, old_sp) ||
           (returns && (!calltags_shared || *calltags_word(new_sp - 8) != ~0ull)) ||
           !find_frame_below(new_sp, old_sp, &word);
}

static bool is_up(u64 old_sp, u64 new_sp, bool returns)
{
    return old_sp < CLIENT_END && new_sp < CLIENT_END - PAGE_SIZE &&
           new_sp - old_sp < SAME_STACK_BYTES && new_sp <= calltags_root_above(old_sp) &&
           leaves_frames(old_sp, new_sp, returns);
}

bool calltags_is_up(u64 old_sp, u64 new_sp)
{
    return is_up(old_sp, new_sp, false);
}

bool calltags_load_sp(u64 old_sp, u64 new_sp, bool returns)
{
    if (is_up(old_sp, new_sp, returns)) {
        for (u64 *word = calltags_word(old_sp); !calltags_shared && word < calltags_word(new_sp);
             word++)
            *word = 0;
        return true;
    }
    if (old_sp - new_sp > PAGE_SIZE && new_sp < CLIENT_END - PAGE_SIZE)
        begin_if_fresh(new_sp);
    return false;
}

void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp)
{
    if (slot >= CLIENT_END)
        return;
    if (sp - slot > SIGNAL_FRAME_MAX)
        begin_if_fresh(slot); // on an alternate stack
    *interruption_of(slot) = (Interruption){slot, pc, sp};
    *calltags_word(slot) = CALLTAG_SIGNAL;
}

u32 calltags_thread_context(ThreadCtx *ctx, GuestAddr pc)
{
    GuestAddr slot;

    if (ctx->calltags.contexts)
        return calltags_context(pc, ctx->gpr[RSP], ctx->calltags.contexts, &slot);
    return ctx->callstack.bottom ? callstack_context(&ctx->callstack, pc, ctx->gpr[RSP]) : 0;
}
