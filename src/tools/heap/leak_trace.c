// SPDX-License-Identifier: MIT
//
// Following pointers through memory that no cache holds. A block of a large heap costs
// three misses of cache and TLB: its content, its entry in the list of blocks, its mark. So
// nothing is used when it is found; it is prefetched and waits in a ring until others have
// been prefetched behind it. 10 million blocks in disorder take 8.5 s of CPU without this and
// 3 s with it (tests/unit/heap_leak_speed_test.c, Zen 3 in a VM).
//
// What is lost was mostly read before (leak_edges.c): then the list of a block takes the place
// of its content and nothing has to be looked up.
#include "tools/heap/leak_trace.h"
#include "base/pages.h"

#define PIECE_BYTES (64 * KiB) // of a block that is read in one go
#define NO_ITEM     (~0ull)
#define SHARE_EVERY 64

bool leak_trace_push(TraceStack *stack, u64 item)
{
    if (UNLIKELY(stack->count == stack->capacity)) {
        u64 bytes = stack->capacity * sizeof(u64);
        u64 *grown = bytes ? pages_resize(stack->items, bytes, bytes * 2) : pages_map(64 * KiB);
        if (!grown)
            return false;
        stack->items = grown;
        stack->capacity = bytes ? stack->capacity * 2 : 64 * KiB / sizeof(u64);
    }
    stack->items[stack->count++] = item;
    return true;
}

void leak_trace_stack_free(TraceStack *stack)
{
    if (stack->items)
        pages_unmap(stack->items, stack->capacity * sizeof(u64));
    *stack = (TraceStack){0};
}

void leak_trace_init(Tracer *tracer, LeakCheck *check, TraceAccept *accept, void *owner)
{
    *tracer = (Tracer){.check = check, .accept = accept, .owner = owner};
    for (u32 i = 0; i < TRACE_BLOCKS; i++)
        tracer->blocks[i] = NO_ITEM;
}

void leak_trace_free(Tracer *tracer)
{
    leak_trace_stack_free(&tracer->work);
}

void leak_trace_from(Tracer *tracer, u32 code)
{
    enum { ALL_THE_SAME = 63 };

    tracer->reading = code;
    tracer->origin = 0;
    tracer->shift = ALL_THE_SAME;
}

void leak_trace_from_root(Tracer *tracer, u64 root)
{
    enum { WORD_SHIFT = 3 };
    const LeakCheck *check = tracer->check;

    leak_trace_from(tracer, check->codes.of_root[root]);
    if (root >= check->codes.fine_roots)
        return;
    tracer->origin = check->input.roots[root].low;
    tracer->shift = WORD_SHIFT;
}

void leak_trace_block(Tracer *tracer, u64 item)
{
    if (UNLIKELY(!leak_trace_push(&tracer->work, item)))
        tracer->has_failed = true;
}

// The found block may be one of them.
static void resolve_containers(Tracer *tracer, u32 found, const TraceWord *word)
{
    const LeakIndex *index = &tracer->check->index;
    const LeakBlock *blocks = tracer->check->input.blocks;
    u32 container = leak_container_at(index, blocks, word->value);

    for (; container != NO_BLOCK;
         container = leak_container_around(index, blocks, container, word->value)) {
        u32 block = leak_container_block(index, container);
        if (block != found && tracer->accept(tracer->owner, block, word->value, word->reader))
            leak_trace_block(tracer, block);
    }
}

static void resolve(Tracer *tracer, const TraceWord *word)
{
    const LeakCheck *check = tracer->check;
    u32 block = word->value & TRACE_IS_BLOCK
                    ? (u32)word->value
                    : leak_index_find(&check->index, check->input.blocks, word->value);

    if (block != NO_BLOCK && tracer->accept(tracer->owner, block, word->value, word->reader))
        leak_trace_block(tracer, block);
    if (UNLIKELY(tracer->finds_containers) && block != NO_BLOCK)
        resolve_containers(tracer, block, word);
}

// What resolve() is going to read.
static inline void prefetch_lookup(const LeakCheck *check, GuestAddr address)
{
    u32 guess = leak_index_guess(&check->index, address);

    if (guess == NO_BLOCK)
        return;
    prefetch_line(&check->input.blocks[guess]);
    prefetch_line(&check->marks[guess]);
    if (check->holders)
        prefetch_line(&check->holders[guess]);
}

// Puts a word in the ring and resolves the one that has waited longest.
static void put_word(Tracer *tracer, TraceWord word)
{
    TraceWord *place = &tracer->words[tracer->next_word++ % TRACE_WORDS];
    TraceWord oldest = *place;

    *place = word;
    if (oldest.value)
        resolve(tracer, &oldest);
    else
        tracer->waiting_words++;
}

bool leak_trace_word(void *data, GuestAddr location, u64 value)
{
    Tracer *tracer = data;
    const LeakIndex *index = &tracer->check->index;

    if (LIKELY(value - index->low >= index->high - index->low))
        return true;
    prefetch_lookup(tracer->check, value);
    u32 code = tracer->reading + (u32)((location - tracer->origin) >> tracer->shift);
    put_word(tracer, (TraceWord){value, code});
    return true;
}

static void resolve_all(Tracer *tracer)
{
    for (u32 i = 0; tracer->waiting_words && i < TRACE_WORDS; i++) {
        TraceWord *place = &tracer->words[(tracer->next_word + i) % TRACE_WORDS];
        TraceWord word = *place;
        place->value = 0;
        if (word.value) {
            tracer->waiting_words--;
            resolve(tracer, &word);
        }
    }
}

// An item is a block and a piece of it. The rest of a large block is pushed before a piece
// is read, so that other workers can take it.
static void read_piece(Tracer *tracer, u64 item)
{
    const LeakInput *input = &tracer->check->input;
    const LeakBlock *block = &input->blocks[(u32)item];
    u64 offset = (item >> 32) * PIECE_BYTES, size = leak_block_size(block);
    u64 end = min_u64(size, offset + PIECE_BYTES);
    GuestAddr start = leak_block_start(block);

    if (end < size)
        leak_trace_block(tracer, item + (1ull << 32));
    // Pieces meet at an aligned word even if the block does not begin at one.
    GuestAddr low = offset ? (start + offset) & ~7ull : start;
    GuestAddr high = end < size ? (start + end) & ~7ull : start + size;
    leak_trace_from(tracer, tracer->check->codes.first_block + (u32)item);
    leak_for_each_word(input, low, high, leak_trace_word, tracer);
}

static const u32 *list_of(const Tracer *tracer, u32 block)
{
    const LeakCheck *check = tracer->check;
    u32 list = tracer->has_lists ? check->lost[block].list : 0;

    return list ? &check->edges.words[list] : NULL;
}

static void read_list(Tracer *tracer, u32 block, const u32 *list)
{
    const LeakCheck *check = tracer->check;
    u32 head = *list++;

    tracer->listed_bytes += leak_list_size(head);
    for (u32 left = leak_list_count(head); left > 0; left--) {
        u32 target = *list++;
        if (target != NO_BLOCK) {
            prefetch_line(&check->marks[target]);
            prefetch_line(&check->lost[target]);
        }
        put_word(tracer, (TraceWord){TRACE_IS_BLOCK | target, check->codes.first_block + block});
    }
}

static void read_item(Tracer *tracer, u64 item)
{
    const u32 *list = list_of(tracer, (u32)item);

    if (list)
        read_list(tracer, (u32)item, list);
    else
        read_piece(tracer, item);
}

static void prefetch_item(const Tracer *tracer, u64 item)
{
    const u32 *list = list_of(tracer, (u32)item);

    if (list)
        prefetch_line(list);
    else
        leak_trace_prefetch_content(tracer->check, (u32)item);
}

static u64 swap_block(Tracer *tracer, u64 item)
{
    u64 *place = &tracer->blocks[tracer->next_block++ % TRACE_BLOCKS];
    u64 oldest = *place;

    *place = item;
    tracer->waiting_blocks += (item != NO_ITEM) - (oldest != NO_ITEM);
    return oldest;
}

static u64 take_item(TraceStack *work, bool from_front)
{
    if (!from_front)
        return work->items[--work->count];
    u64 item = work->items[work->taken++];
    if (work->taken == work->count)
        work->taken = work->count = 0;
    return item;
}

void leak_trace_drain(Tracer *tracer)
{
    for (u32 rounds = 1; !tracer->has_failed; rounds++) {
        u64 oldest = NO_ITEM;
        if (tracer->work.count) {
            u64 item = take_item(&tracer->work, tracer->is_queue);
            prefetch_item(tracer, item);
            oldest = swap_block(tracer, item);
        } else if (tracer->waiting_blocks) {
            oldest = swap_block(tracer, NO_ITEM);
        } else {
            resolve_all(tracer);
            if (!tracer->work.count)
                return;
        }
        if (oldest != NO_ITEM)
            read_item(tracer, oldest);
        if (rounds % SHARE_EVERY == 0 && tracer->share)
            tracer->share(tracer->owner);
    }
}
