// SPDX-License-Identifier: MIT
//
// Stacks that come again: most allocations are made from stacks of which one was there before,
// frame by frame, but for the ones that have been called anew. To walk up and to find
// the context of each new frame costs 25 ns a frame; to see that the tags are where
// they were, one.
//
// What must stay true
//   S1  The frames of a StackChain follow each other: nothing was called between two of them. If
//       a word is what it was, its context included, that frame and all above it are the same;
//       if it has the same tag and no context yet, it was called anew from the same place.
#include "tools/massif/massif.h"

enum { LEARNT_EVERY = 32 }; // misses: to learn a stack costs as much as ten of them

// Where it holds, all its frames have their contexts now.
static inline bool holds(const StackChain *chain)
{
    u32 i = 0;
    for (;; i++) {
        if (i == chain->count)
            return false;
        u64 word = *calltags_word(chain->frames[i].slot), tag = chain->frames[i].tag;
        if (word == tag)
            break;
        if (word != (u32)tag)
            return false;
    }
    while (i-- > 0)
        *calltags_word(chain->frames[i].slot) = chain->frames[i].tag;
    return true;
}

static __attribute__((noinline)) void learn(StackChain *chain, GuestAddr pc, u64 sp, u32 context,
                                            GuestAddr slot)
{
    u32 count = 0;
    GuestAddr at = pc;
    while (slot && count < ARRAY_LEN(chain->frames) && !calltags_is_elastic(at)) {
        u64 word = *calltags_word(slot);
        if (word >> 32 == 0 || (u32)word == CALLTAG_SIGNAL)
            break; // what it has interrupted is elsewhere
        chain->frames[count].slot = slot;
        chain->frames[count++].tag = word;
        at = calltags_read(slot);
        slot = calltags_frame_slot(slot + 8);
    }
    chain->pc = pc;
    chain->sp = sp;
    chain->context = context;
    chain->count = count;
}

u32 stack_context(ToolThread *thread, GuestAddr pc, GuestAddr *ret_slot,
                  const StackChain **ret_chain)
{
    MassifThread *mt = massif_thread(thread);
    u64 sp = thread->gpr[RSP];
    StackChain *chain = &mt->chains[(pc ^ sp << 7) * 0x9e3779b97f4a7c15ull >> 55];
    _Static_assert(STACK_CHAINS == 512, "the shift");
    if (LIKELY(chain->pc == pc && chain->sp == sp) && LIKELY(holds(chain))) {
        *ret_slot = chain->frames[0].slot;
        *ret_chain = chain;
        return chain->context;
    }
    u32 context = calltags_context(pc, sp, &mt->cache, ret_slot);
    if (mt->misses++ % LEARNT_EVERY == 0)
        learn(chain, pc, sp, context, *ret_slot);
    *ret_chain = NULL;
    return context;
}
