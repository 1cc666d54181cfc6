// SPDX-License-Identifier: MIT
//
// Says each allocation event of calls that the program itself makes.
#include <muninn/tool.h>
#include <string.h>

MUNINN_TOOL("allocs", "says allocation events")

static void on_allocation(MuninnThread *thread, const MuninnAllocation *event, void *data)
{
    static const char *const words[] = {"allocated", "freed", "resized"};
    MuninnModule module;
    if (!muninn_module_at(event->pc, &module) || !strstr(module.path, "allocations"))
        return;
    muninn_log("%s %lu%s", words[event->kind], event->size,
               event->kind == MUNINN_RESIZED && !event->old ? ", from nowhere" : "");
}

int muninn_tool_start(void)
{
    muninn_on_allocation(on_allocation, NULL);
    return 0;
}
