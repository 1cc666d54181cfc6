// SPDX-License-Identifier: MIT
//
// A tool for an interface of another version, with a function that this one has not.
#include <muninn/tool.h>

void muninn_of_the_future(void);

MUNINN_EXPORT const MuninnTool muninn_tool = {VERSION, MINOR, "future", "is from the future"};

int muninn_tool_start(void)
{
    muninn_of_the_future();
    return 0;
}
