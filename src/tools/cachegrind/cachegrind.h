// SPDX-License-Identifier: MIT
//
// --tool=cachegrind: how often each line of the source has been executed, in instructions.
#ifndef MUNINN_TOOLS_CACHEGRIND_CACHEGRIND_H
#define MUNINN_TOOLS_CACHEGRIND_CACHEGRIND_H

#include "muninn/tool.h"

extern const MuninnTool cachegrind_description;
int cachegrind_start(void);

#endif
