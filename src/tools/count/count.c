// SPDX-License-Identifier: MIT
//
// Counts what each thread executes: instructions, blocks, reads and writes. Also the proof that a
// tool fits on a page, and that the public interface is all that one needs.
#include "tools/count/count.h"

#include <string.h>

typedef enum What { INSTRUCTIONS, BLOCKS, READS, WRITES, KINDS } What;

static const char *const words[KINDS] = {
    [INSTRUCTIONS] = "instructions",
    [BLOCKS] = "blocks",
    [READS] = "reads",
    [WRITES] = "writes",
};

static MuninnCounter counters[KINDS];
static uint64_t threads_seen;

static void on_block(MuninnBlock *block, void *data)
{
    (void)data;
    muninn_count(muninn_block_insn(block, 0), counters[BLOCKS], 1);
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        MuninnAccess accesses[MUNINN_ACCESSES_MAX];
        uint32_t reads = 0, writes = 0;
        size_t count = muninn_insn_accesses(insn, accesses, MUNINN_ACCESSES_MAX);
        for (size_t j = 0; j < count; j++) {
            reads += accesses[j].reads;
            writes += accesses[j].writes;
        }
        muninn_count(insn, counters[INSTRUCTIONS], 1);
        muninn_count(insn, counters[READS], reads);
        muninn_count(insn, counters[WRITES], writes);
    }
}

static void on_thread_start(MuninnThread *thread, void *data)
{
    (void)thread;
    (void)data;
    __atomic_fetch_add(&threads_seen, 1, __ATOMIC_RELAXED);
}

static void on_thread_end(MuninnThread *thread, void *data)
{
    (void)data;
    muninn_log("thread %d instructions %lu", muninn_thread_id(thread),
               muninn_counter_of(thread, counters[INSTRUCTIONS]));
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    (void)thread;
    (void)data;
    muninn_counters_reset();
    threads_seen = 1;
}

static void on_end(void *data)
{
    (void)data;
    for (int i = 0; i < KINDS; i++)
        muninn_log("total %s %lu", words[i], muninn_counter_total(counters[i]));
    muninn_log("total threads %lu", threads_seen);
}

int count_start(void)
{
    for (int i = 0; i < KINDS; i++)
        counters[i] = muninn_counter();
    muninn_on_block(on_block, NULL);
    muninn_on_thread_start(on_thread_start, NULL);
    muninn_on_thread_end(on_thread_end, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}

const MuninnTool count_description = {
    MUNINN_TOOL_API, MUNINN_TOOL_API_MINOR, "count",
    "counts instructions, blocks and memory accesses of each thread",
};
