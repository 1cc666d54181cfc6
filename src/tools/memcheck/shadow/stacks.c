// SPDX-License-Identifier: MIT
//
// What a thread's stack is when it begins. clone3 is told its bounds, and C libraries put a guard
// below a stack and their own data of the thread above. A bare clone has a stack pointer only: the
// mapping may be that stack's alone, or be full of other things. It counts as the stack's alone if
// the stack pointer is at its end and nothing of it was touched, until something shows the
// opposite: another stack in it, or an access of the thread's far below its frames
// (stacks_guess_holds()).
// Else nothing below the stack pointer is known to be the stack's: nothing is marked, nothing
// forbidden.
#include <sys/mman.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/run/run.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

enum { RED_ZONE = 128 };
enum { GUESSED_MAX = 16 << 20 };
enum { KEPT_PART = 8 }; // of a guessed stack: programs keep data at its lower end

static ToolThread *guessed; // a list, by MemcheckThread.next_guessed; under the engine lock

// Thread-local variables and what the library knows of the thread lie above the stack.
static bool has_tls_above(const ToolThread *thread, const Mapping *mapping)
{
    return thread->client_fs > thread->gpr[RSP] && thread->client_fs < mapping->end;
}

static bool has_guard(const Mapping *mapping)
{
    const Mapping *below = aspace_find(mapping->start - 1);
    return below && below->prot == PROT_NONE;
}

static bool looks_like_stack(const ToolThread *thread, const Mapping *mapping)
{
    GuestAddr sp = thread->gpr[RSP];
    return (mapping->end - sp <= PAGE_SIZE || has_tls_above(thread, mapping)) &&
           mapping->flags & MAP_PRIVATE && mapping->flags & MAP_ANONYMOUS && !mapping->name &&
           mapping->end - mapping->start <= GUESSED_MAX &&
           sp - mapping->start > 2 * PAGE_SIZE &&
           stacks_pages(mapping->start, PAGE_DOWN(sp) - PAGE_SIZE) == STACK_NONE_TOUCHED;
}

// Where the stack ends; 0: nobody knows.
static GuestAddr lowest(ToolThread *thread, const Mapping *mapping)
{
    GuestAddr sp = thread->gpr[RSP];
    if (thread->thread.stack_lowest && thread->thread.stack_lowest < sp)
        return max_u64(mapping->start, thread->thread.stack_lowest);
    if (thread->relay.number == 1 || (has_tls_above(thread, mapping) && has_guard(mapping)))
        return mapping->start;
    if (!looks_like_stack(thread, mapping))
        return 0;
    memcheck_thread(thread)->is_guessed = true;
    return mapping->start + PAGE_UP((sp - mapping->start) / KEPT_PART);
}

// Those whose guess has this thread's stack in it.
static void correct_guesses(const ToolThread *thread)
{
    GuestAddr sp = thread->gpr[RSP];
    for (ToolThread *other = guessed; other; other = memcheck_thread(other)->next_guessed) {
        MemcheckThread *mt = memcheck_thread(other);
        if (other != thread && sp > mt->stack_lo && sp <= mt->first_sp)
            stacks_forget_bounds(other);
    }
}

void stacks_thread_start(ToolThread *thread)
{
    MemcheckThread *mt = memcheck_thread(thread);
    mt->first_sp = mt->stack_lo = mt->stack_hi = thread->gpr[RSP];
    thread->tool.store_below = ~0ull;
    lock_acquire(&engine_lock);
    correct_guesses(thread);
    const Mapping *mapping = aspace_find(thread->gpr[RSP] - 1);
    GuestAddr low = mapping ? lowest(thread, mapping) : 0;
    if (low) {
        thread->tool.store_below = mt->stack_lo = low;
        mt->stack_hi = mapping->end;
        shadow_open_stack(low, thread->gpr[RSP] - RED_ZONE);
    }
    if (mt->is_guessed) {
        mt->next_guessed = guessed;
        guessed = thread;
    }
    lock_release(&engine_lock);
}

void stacks_thread_end(ToolThread *thread)
{
    lock_acquire(&engine_lock);
    for (ToolThread **at = &guessed; *at; at = &memcheck_thread(*at)->next_guessed) {
        if (*at == thread) {
            *at = memcheck_thread(thread)->next_guessed;
            break;
        }
    }
    lock_release(&engine_lock);
}

// The others of the list are in the parent.
void stacks_fork_child(ToolThread *thread)
{
    MemcheckThread *mt = memcheck_thread(thread);
    guessed = mt->is_guessed ? thread : NULL;
    mt->next_guessed = NULL;
}
