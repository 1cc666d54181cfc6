// SPDX-License-Identifier: MIT
//
// The heap of the client: the functions that are replaced, and what is counted of their blocks.
#ifndef MUNINN_TOOLS_MEMCHECK_HEAP_HEAP_H
#define MUNINN_TOOLS_MEMCHECK_HEAP_HEAP_H

#include "tools/memcheck/heap/count.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/heap/quick.h"

#endif
