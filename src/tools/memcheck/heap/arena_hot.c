// SPDX-License-Identifier: MIT
//
// The functions of Firefox' allocator that are told an arena in front of the arguments of malloc
// and its family. What they give out may go to realloc and free, which are replaced: so these are,
// too.
#include <string.h>

#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/memcheck.h"

// The call as the function of the C library at `row` would have got it.
static u64 without_arena(ToolThread *thread, ToolCall *call, u32 row)
{
    ToolCall inner = *call;
    inner.function = &memcheck_functions[row];
    memmove(inner.args, inner.args + 1, sizeof(inner.args) - sizeof(inner.args[0]));
    u64 result = inner.function->replace(thread, &inner);
    call->needs_full = inner.needs_full;
    call->run_original = inner.run_original;
    if (inner.run_original) { // no memory: it is asked for what nobody has, in the same place
        thread->gpr[RDX] = thread->gpr[RSI];
        thread->gpr[RSI] = thread->gpr[RDI];
        thread->gpr[RDI] = call->args[0];
    }
    return result;
}

u64 replace_arena_malloc(ToolThread *thread, ToolCall *call)
{
    heap_check_argument(thread, call, RSI);
    return without_arena(thread, call, MEMCHECK_MALLOC);
}

u64 replace_arena_calloc(ToolThread *thread, ToolCall *call)
{
    heap_check_argument(thread, call, RDX);
    return without_arena(thread, call, MEMCHECK_CALLOC);
}

u64 replace_arena_realloc(ToolThread *thread, ToolCall *call)
{
    heap_check_argument(thread, call, RDX);
    return without_arena(thread, call, MEMCHECK_REALLOC);
}

u64 replace_arena_memalign(ToolThread *thread, ToolCall *call)
{
    heap_check_argument(thread, call, RDX);
    return without_arena(thread, call, MEMCHECK_MEMALIGN);
}

u64 replace_arena_free(ToolThread *thread, ToolCall *call)
{
    heap_check_argument(thread, call, RSI);
    return without_arena(thread, call, MEMCHECK_FREE);
}
