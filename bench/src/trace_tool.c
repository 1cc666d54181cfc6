// SPDX-License-Identifier: MIT
//
// A tool that has every access to memory written down, and does next to nothing with it: what the
// buffers of the tool interface cost.
#include <muninn/tool.h>

MUNINN_TOOL("trace", "writes down every access")

static MuninnBuffer *buffer;
static uint64_t accesses, sum;

static void on_records(MuninnThread *thread, const MuninnRecord *records, size_t count, void *data)
{
    (void)thread;
    (void)data;
    uint64_t own = 0;
    for (size_t i = 0; i < count; i++)
        own += records[i].address ^ records[i].tag;
    __atomic_fetch_add(&accesses, count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum, own, __ATOMIC_RELAXED);
}

static void on_block(MuninnBlock *block, void *data)
{
    (void)data;
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        size_t count = muninn_insn_accesses(insn, NULL, 0);
        for (size_t j = 0; j < count; j++)
            muninn_record(insn, j, buffer, (uint32_t)muninn_insn_address(insn));
    }
}

static void on_end(void *data)
{
    (void)data;
    muninn_log("%lu accesses, sum %lx", accesses, sum);
}

int muninn_tool_start(void)
{
    buffer = muninn_buffer(4096, on_records, NULL);
    muninn_on_block(on_block, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
