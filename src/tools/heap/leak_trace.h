// SPDX-License-Identifier: MIT
//
// Following pointers from block to block, for both stages that do: marking and cliques.
#ifndef MUNINN_TOOLS_HEAP_LEAK_TRACE_H
#define MUNINN_TOOLS_HEAP_LEAK_TRACE_H

#include "tools/heap/leak_internal.h"

#define TRACE_WORDS  32
#define TRACE_BLOCKS 16

#define TRACE_IS_BLOCK (1ull << 63)

typedef struct TraceStack {
    u64 *items; // a block | a piece of it << 32
    u64 count;
    u64 capacity;
    u64 taken; // as a queue: so many from the front
} TraceStack;

bool leak_trace_push(TraceStack *stack, u64 item); // false: no memory
void leak_trace_stack_free(TraceStack *stack);

// A pointer `value` to the block was found; `reader` is the code of where. True: read it too.
typedef bool TraceAccept(void *owner, u32 block, GuestAddr value, u32 reader);

typedef struct TraceWord {
    u64 value; // 0: none; TRACE_IS_BLOCK | block, or NO_BLOCK: what a list says
    u32 reader;
} TraceWord;

typedef struct Tracer {
    LeakCheck *check;
    TraceAccept *accept;
    void (*share)(void *owner); // called now and then while draining. May be NULL
    bool is_queue;              // what is found first is read first
    bool has_lists;             // LostBlock.list is there
    bool finds_containers;      // a word points to those around a block, too
    void *owner;
    TraceStack work;
    TraceWord words[TRACE_WORDS]; // pointers whose lookup was prefetched
    u64 blocks[TRACE_BLOCKS];     // items whose content was prefetched
    u32 next_word;
    u32 next_block;
    u32 waiting_words;
    u32 waiting_blocks;
    u32 reading;       // code of the word at `origin`, whose neighbours are followed, …
    GuestAddr origin;
    u8 shift;          // … and how far apart those are that have the next codes
    u64 listed_bytes;  // of all blocks whose list was read
    bool has_failed; // no memory
} Tracer;

void leak_trace_init(Tracer *tracer, LeakCheck *check, TraceAccept *accept, void *owner);
void leak_trace_free(Tracer *tracer);
void leak_trace_block(Tracer *tracer, u64 item);                   // to be read
void leak_trace_from(Tracer *tracer, u32 code);                    // the next words are all this
void leak_trace_from_root(Tracer *tracer, u64 root);               // they are in this root
bool leak_trace_word(void *tracer, GuestAddr location, u64 value); // a WordVisit
void leak_trace_drain(Tracer *tracer);                             // until nothing is left to read

static inline void leak_trace_prefetch_content(const LeakCheck *check, u64 block)
{
    const LeakInput *input = &check->input;
    GuestAddr start = leak_block_start(&input->blocks[block]);

    if (input->prefetch)
        input->prefetch(input->data, start);
    else
        prefetch_line((const void *)start);
}

#endif
