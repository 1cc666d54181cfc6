// SPDX-License-Identifier: MIT
//
// --tool=count: what each thread executes.
#ifndef MUNINN_TOOLS_COUNT_COUNT_H
#define MUNINN_TOOLS_COUNT_COUNT_H

#include "muninn/tool.h"

extern const MuninnTool count_description;
int count_start(void);

#endif
