// SPDX-License-Identifier: MIT
//
// Stacks that the client has registered: those of its own threads or coroutines.
// Ids count from 1 and are not used again. There are few; a list will do. The call
// stack needs no such help (callstack/callstack.h); tools may ask.
#include "base/futex_lock.h"
#include "base/vec.h"
#include "engine/request/request_internal.h"

typedef struct RegisteredStack {
    u64 id;
    GuestAddr lowest, highest;
} RegisteredStack;

enum { STACKS_MAX = 1 << 16 }; // a client that never deregisters

static Lock stacks_lock;
static Vec stacks; // of RegisteredStack
static u64 last_id;

// Clients name the two ends in either order.
static RegisteredStack stack_between(u64 id, GuestAddr a, GuestAddr b)
{
    return (RegisteredStack){id, min_u64(a, b), max_u64(a, b)};
}

static RegisteredStack *find(u64 id)
{
    for (size_t i = 0; i < stacks.count; i++) {
        RegisteredStack *stack = vec_at(&stacks, i);
        if (stack->id == id)
            return stack;
    }
    return NULL;
}

u64 stacks_register(GuestAddr a, GuestAddr b)
{
    lock_acquire(&stacks_lock);
    if (!stacks.element_bytes)
        vec_init(&stacks, sizeof(RegisteredStack));
    RegisteredStack stack = stack_between(++last_id, a, b);
    if (stacks.count < STACKS_MAX)
        vec_push(&stacks, &stack);
    lock_release(&stacks_lock);
    return stack.id;
}

void stacks_deregister(u64 id)
{
    lock_acquire(&stacks_lock);
    RegisteredStack *stack = find(id);
    if (stack)
        vec_remove_unordered(&stacks, (size_t)(stack - (RegisteredStack *)vec_at(&stacks, 0)));
    lock_release(&stacks_lock);
}

void stacks_change(u64 id, GuestAddr a, GuestAddr b)
{
    lock_acquire(&stacks_lock);
    RegisteredStack *stack = find(id);
    if (stack)
        *stack = stack_between(id, a, b);
    lock_release(&stacks_lock);
}

bool request_find_stack(GuestAddr address, GuestAddr *ret_lowest, GuestAddr *ret_highest)
{
    bool found = false;
    lock_acquire(&stacks_lock);
    for (size_t i = 0; i < stacks.count && !found; i++) {
        const RegisteredStack *stack = vec_at(&stacks, i);
        found = address >= stack->lowest && address <= stack->highest;
        if (found) {
            *ret_lowest = stack->lowest;
            *ret_highest = stack->highest;
        }
    }
    lock_release(&stacks_lock);
    return found;
}

void stacks_fork_prepare(void)
{
    lock_acquire(&stacks_lock);
}

void stacks_fork_done(void)
{
    lock_release(&stacks_lock);
}
