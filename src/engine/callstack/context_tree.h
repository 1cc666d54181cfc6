// SPDX-License-Identifier: MIT
//
// The calling-context tree, as the rest of this folder sees it.
#ifndef MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H
#define MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H

#include "base/futex_lock.h"
#include "base/types.h"
#include "engine/callstack/callstack.h"

Lock *context_tree_lock(void);

#endif
