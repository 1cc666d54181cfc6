// SPDX-License-Identifier: MIT
//
// Says each allocation event of calls that the program itself makes.
#include <muninn/tool.h>
#include <string.h>

MUNINN_TOOL("allocs", "says allocation events")

// Of the program's own code, as far as it has been translated: what calls has been.
static MuninnAddress low = ~(MuninnAddress)0, high;

static void on_block(MuninnBlock *block, void *data)
{
    MuninnModule module;
    if (!muninn_module_at(muninn_block_address(block), &module) ||
        !strstr(module.path, "allocations"))
        return;
    low = module.start < low ? module.start : low;
    high = module.end > high ? module.end : high;
}

static void on_allocation(MuninnThread *thread, const MuninnAllocation *event, void *data)
{
    static const char *const words[] = {"allocated", "freed", "resized"};
    if (event->pc < low || event->pc >= high)
        return;
    muninn_log("%s %lu%s", words[event->kind], event->size,
               event->kind == MUNINN_RESIZED && !event->old ? ", from nowhere" : "");
}

int muninn_tool_start(void)
{
    muninn_on_allocation(on_allocation, NULL);
    muninn_on_block(on_block, NULL);
    return 0;
}
