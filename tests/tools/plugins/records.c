// SPDX-License-Identifier: MIT
//
// How many accesses each instruction between --from and --to has begun, by a buffer.
#include <muninn/tool.h>

MUNINN_TOOL("records", "counts accesses of a range by a buffer")

enum { ROOM = 256 };
static uint64_t from, to, size = 1000;
static uint64_t totals[ROOM];
static MuninnBuffer *buffer, *second;
static uint64_t seconds;

static void on_records(MuninnThread *thread, const MuninnRecord *records, size_t count, void *data)
{
    for (size_t i = 0; i < count; i++)
        __atomic_fetch_add(&totals[records[i].tag % ROOM], 1, __ATOMIC_RELAXED);
}

static void on_second(MuninnThread *thread, const MuninnRecord *records, size_t count, void *data)
{
    __atomic_fetch_add(&seconds, count, __ATOMIC_RELAXED);
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        uint64_t at = muninn_insn_address(insn) - from;
        if (muninn_insn_address(insn) >= from && muninn_insn_address(insn) < to && at < ROOM) {
            muninn_record(insn, 0, buffer, (uint32_t)at);
            muninn_record(insn, 0, second, 7);
        }
    }
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    for (int i = 0; i < ROOM; i++)
        totals[i] = 0;
    seconds = 0;
}

static void on_end(void *data)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < ROOM; at++) {
        sum += totals[at];
        if (totals[at])
            muninn_log("+%lu %lu", at, totals[at]);
    }
    if (sum != seconds)
        muninn_log("the second buffer had %lu", seconds);
}

int muninn_tool_start(void)
{
    muninn_option_number("from", &from, "The first address.");
    muninn_option_number("to", &to, "Where the range ends.");
    muninn_option_number("size", &size, "Records of a buffer.");
    buffer = muninn_buffer(size, on_records, NULL);
    second = muninn_buffer(3 * size, on_second, NULL);
    muninn_on_block(on_block, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
