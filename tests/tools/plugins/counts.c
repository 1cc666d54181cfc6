// SPDX-License-Identifier: MIT
//
// How often each instruction between --from and --to was completed.
#include <muninn/tool.h>

MUNINN_TOOL("counts", "counts each instruction of a range")

enum { ROOM = 256 };
static uint64_t from, to;
static MuninnCounter counters[ROOM];
static bool is_there[ROOM];

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        uint64_t at = muninn_insn_address(insn) - from;
        if (muninn_insn_address(insn) < from || muninn_insn_address(insn) >= to || at >= ROOM)
            continue;
        if (!is_there[at])
            counters[at] = muninn_counter();
        is_there[at] = true;
        muninn_count(insn, counters[at], 1);
    }
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    muninn_counters_reset();
}

static void on_end(void *data)
{
    for (uint64_t at = 0; at < ROOM; at++) {
        if (is_there[at])
            muninn_log("+%lu %lu", at, muninn_counter_total(counters[at]));
    }
}

int muninn_tool_start(void)
{
    muninn_option_number("from", &from, "The first address.");
    muninn_option_number("to", &to, "Where the range ends.");
    muninn_on_block(on_block, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
