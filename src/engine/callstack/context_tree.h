// SPDX-License-Identifier: MIT
//
// The calling-context tree, as the rest of this folder sees it.
#ifndef MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H
#define MUNINN_ENGINE_CALLSTACK_CONTEXT_TREE_H

#include "base/futex_lock.h"
#include "base/types.h"

// The id of (parent, pc): lock-free when it exists, made under the lock otherwise.
// When ids or memory run out the parent itself is returned: the context is then
// true but less deep.
u32 context_intern(u32 parent, GuestAddr pc);

Lock *context_tree_lock(void);

#endif
