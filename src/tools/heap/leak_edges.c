// SPDX-License-Identifier: MIT
//
// What lost blocks point to, read before they are sorted into cliques. The sorting is sequential
// and goes from block to block by pointers, where each step misses cache and TLB for the content,
// for what the reader looks at beside it and for the list of blocks. Here all workers read in
// order of address, and what is left for the sorting is one short list a block, close together
// (numbers: docs/design/leak-search.md).
//
// A block that has no list, because it is large or there is no room, is read when its turn comes.
// Words that only looked like pointers are kept, so that the sorting goes the same way with a
// list and without: its result does not depend on what was read here.
#include "base/pages.h"
#include "tools/heap/leak_trace.h"

enum {
    LIST_BLOCK_MAX = 4096, // bytes: the words of a larger one are close together anyway
    WORDS_PER_BLOCK = 8,   // on average, at most: 7 pointers
    CHUNK_BLOCKS = 4096,   // that a worker takes at once
    SLAB_WORDS = 8192,     // the same, of room for lists
    BATCH = 64,            // blocks or words that wait for what was prefetched
    AHEAD = 16,            // blocks
};

typedef struct Chunks {
    LeakCheck *check;
    u64 next; // atomic
} Chunks;

typedef struct Reader {
    LeakCheck *check;
    u64 slab; // in LeakEdges.words
    u64 slab_end;
    u32 words;
    u32 blocks;
    u64 values[BATCH + LIST_BLOCK_MAX / 8]; // words of the blocks that wait, …
    struct {
        u32 block;
        u32 words; // … so many of each
    } waiting[BATCH];
} Reader;

static bool keep_word(void *data, GuestAddr location, u64 value)
{
    Reader *reader = data;
    const LeakIndex *index = &reader->check->index;

    (void)location;
    if (value - index->low >= index->high - index->low)
        return true;
    u32 guess = leak_index_guess(index, value);
    if (guess != NO_BLOCK)
        prefetch_line(&reader->check->input.blocks[guess]);
    reader->values[reader->words++] = value;
    return true;
}

// Where so many words may be written; 0: there are no more.
static u32 take_room(Reader *reader, u32 words)
{
    LeakEdges *edges = &reader->check->edges;

    if (reader->slab + words > reader->slab_end) {
        reader->slab = __atomic_fetch_add(&edges->used, SLAB_WORDS, __ATOMIC_RELAXED);
        reader->slab_end = reader->slab + SLAB_WORDS;
    }
    if (reader->slab_end > edges->room)
        return 0;
    reader->slab += words;
    return (u32)(reader->slab - words);
}

static void write_lists(Reader *reader)
{
    LeakCheck *check = reader->check;
    const u64 *values = reader->values;

    for (u32 i = 0; i < reader->blocks; i++) {
        u32 block = reader->waiting[i].block, words = reader->waiting[i].words;
        u32 list = take_room(reader, 1 + words);
        check->lost[block].list = list;
        if (list) {
            u32 *place = &check->edges.words[list];
            u64 size = leak_block_size(&check->input.blocks[block]);
            *place++ = leak_list_head((u32)size, words);
            for (u32 w = 0; w < words; w++)
                *place++ = leak_index_find(&check->index, check->input.blocks, values[w]);
        }
        values += words;
    }
    reader->words = reader->blocks = 0;
}

static bool has_list(const LeakCheck *check, u64 block)
{
    return check->marks[block] == MARK_NONE &&
           leak_block_size(&check->input.blocks[block]) <= LIST_BLOCK_MAX;
}

static void read_block(Reader *reader, u64 block)
{
    const LeakInput *input = &reader->check->input;
    GuestAddr start = leak_block_start(&input->blocks[block]);
    u32 words = reader->words;

    leak_for_each_word(input, start, start + leak_block_size(&input->blocks[block]), keep_word,
                       reader);
    reader->waiting[reader->blocks].block = (u32)block;
    reader->waiting[reader->blocks++].words = reader->words - words;
    if (reader->blocks == BATCH || reader->words >= BATCH)
        write_lists(reader);
}

static void read_chunks(void *argument, u32 number, u32 count)
{
    Chunks *chunks = argument;
    LeakCheck *check = chunks->check;
    const u64 blocks = check->input.block_count;
    Reader reader;
    u64 first;

    (void)number;
    (void)count;
    reader.check = check;
    reader.slab = reader.slab_end = reader.words = reader.blocks = 0;
    while ((first = __atomic_fetch_add(&chunks->next, CHUNK_BLOCKS, __ATOMIC_RELAXED)) < blocks) {
        u64 end = min_u64(first + CHUNK_BLOCKS, blocks);
        for (u64 i = first; i < end; i++) {
            if (i + AHEAD < end && has_list(check, i + AHEAD))
                leak_trace_prefetch_content(check, i + AHEAD);
            if (has_list(check, i))
                read_block(&reader, i);
        }
    }
    write_lists(&reader);
}

void leak_edges_read(LeakCheck *check)
{
    const LeakInput *input = &check->input;
    LeakEdges *edges = &check->edges;
    Chunks chunks = {.check = check};

    edges->used = 1; // 0 is no list
    edges->room = min_u64(input->block_count * WORDS_PER_BLOCK + 2 * SLAB_WORDS, UINT32_MAX);
    edges->words = pages_reserve(edges->room * sizeof(u32));
    if (edges->words && !pages_open(edges->words, edges->room * sizeof(u32)))
        leak_edges_free(check);
    if (!edges->words)
        return; // every block is read when its turn comes
    leak_prefer_huge_pages(edges->words, edges->room * sizeof(u32));
    if (input->workers > 1)
        input->run_workers(input->data, input->workers, read_chunks, &chunks);
    else
        read_chunks(&chunks, 0, 1);
}

void leak_edges_free(LeakCheck *check)
{
    if (check->edges.words)
        pages_unmap(check->edges.words, check->edges.room * sizeof(u32));
    check->edges = (LeakEdges){0};
}
