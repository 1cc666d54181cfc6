// SPDX-License-Identifier: MIT
//
// Choice of a tool by name.
#include "tools/tools.h"

#include <string.h>

#include "tools/cachegrind/cachegrind.h"
#include "tools/count/count.h"
#include "tools/plugin/plugin.h"

static const Tool *const all_tools[] = {&tool_none, &tool_selftest,
                                        &tool_stacktest, &tool_tagtest, &tool_eventtest,
                                        &tool_findingtest, &tool_memcheck, &tool_massif};

// Those that know include/muninn/tool.h alone.
static const struct {
    const MuninnTool *description;
    int (*start)(void);
} public_tools[] = {
    {&count_description, count_start},
    {&cachegrind_description, cachegrind_start},
};

const Tool *tool = &tool_none;

bool tool_select(const Options *options)
{
    const char *name = options->tool;

    if (strchr(name, '/')) {
        tool = plugin_load(name, &options->tool_options);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(public_tools); i++) {
        if (strcmp(public_tools[i].description->name, name) == 0) {
            tool = plugin_start(public_tools[i].description, public_tools[i].start,
                                &options->tool_options);
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(all_tools); i++) {
        if (strcmp(all_tools[i]->name, name) == 0) {
            tool = all_tools[i];
            return true;
        }
    }
    return false;
}
