// SPDX-License-Identifier: MIT
//
// Functions that several rows of the tool's match: two wraps, or a wrap of a function that
// allocates. The engine has one row for a function; here that is a chain, which calls its members:
// `before` and `replace` in the order of the table, `after` and `left` in the opposite one.
//
// A chain never changes: calls that have begun go on with the one that they began with. Chains are
// made under the engine lock.
#include <stdlib.h>
#include <string.h>

#include "tools/plugin/plugin_internal.h"

typedef struct Chain {
    ToolFunction row; // what the engine sees
    struct Chain *next;
    u32 count;
    const ToolFunction *members[];
} Chain;

static Chain *chains;

static const Chain *chain_of(const ToolCall *call)
{
    return (const Chain *)call->function;
}

typedef ToolWrapFn *Handler(const ToolFunction *row);

static ToolWrapFn *before_of(const ToolFunction *row)
{
    return row->before;
}

static ToolWrapFn *after_of(const ToolFunction *row)
{
    return row->after;
}

static ToolWrapFn *left_of(const ToolFunction *row)
{
    return row->left;
}

// Each member has a state of its own in `states`.
static void call_member(ToolThread *thread, ToolCall *call, u32 i, u64 *states, Handler *handler)
{
    const ToolFunction *chain = call->function, *member = chain_of(call)->members[i];
    if (!handler(member))
        return;
    call->function = member;
    call->state = states[i];
    handler(member)(thread, call);
    states[i] = call->state;
    call->function = chain;
}

static u64 *begin(ToolThread *thread, ToolCall *call)
{
    u64 *states = calloc(chain_of(call)->count, sizeof(*states));
    if (!states)
        plugin_refuse("no memory for what its wraps keep");
    for (u32 i = 0; i < chain_of(call)->count; i++)
        call_member(thread, call, i, states, before_of);
    return states;
}

static void end(ToolThread *thread, ToolCall *call, u64 *states, Handler *handler)
{
    for (u32 i = chain_of(call)->count; i-- > 0;)
        call_member(thread, call, i, states, handler);
    free(states);
}

// The members have been called already if a replacement has declined.
static void chain_before(ToolThread *thread, ToolCall *call)
{
    PluginThread *t = plugin_thread(thread);
    u64 *states = t->declined;
    t->declined = NULL;
    call->state = (u64)(states ? states : begin(thread, call));
}

static void chain_after(ToolThread *thread, ToolCall *call)
{
    end(thread, call, (u64 *)call->state, after_of);
}

static void chain_left(ToolThread *thread, ToolCall *call)
{
    end(thread, call, (u64 *)call->state, left_of);
}

// The first replacement that does not decline is the function; the wraps are around it.
static u64 chain_replace(ToolThread *thread, ToolCall *call)
{
    const ToolFunction *chain = call->function;
    u64 *states = begin(thread, call);
    call->run_original = true;
    for (u32 i = 0; i < chain_of(call)->count && call->run_original; i++) {
        const ToolFunction *member = chain_of(call)->members[i];
        if (!member->replace)
            continue;
        call->function = member;
        call->run_original = false;
        call->result = member->replace(thread, call);
        call->function = chain;
    }
    if (call->run_original) {
        plugin_thread(thread)->declined = states;
        return 0;
    }
    end(thread, call, states, after_of);
    return call->result;
}

// ------------------------------------------------------------------- joining

static bool is_chain(const ToolFunction *row)
{
    return row->before == chain_before;
}

static bool has_member(const Chain *chain, const ToolFunction *row)
{
    for (u32 i = 0; i < chain->count; i++) {
        if (chain->members[i] == row)
            return true;
    }
    return false;
}

static u32 count_of(const ToolFunction *row)
{
    return is_chain(row) ? ((const Chain *)row)->count : 1;
}

// `row` and all of `known`.
static const Chain *find(const ToolFunction *known, const ToolFunction *row)
{
    for (const Chain *c = chains; c; c = c->next) {
        bool has_all = has_member(c, row) && c->count == count_of(known) + 1;
        for (u32 i = 0; has_all && i < count_of(known); i++)
            has_all = has_member(c, is_chain(known) ? ((const Chain *)known)->members[i] : known);
        if (has_all)
            return c;
    }
    return NULL;
}

static void add_member(Chain *chain, const ToolFunction *row)
{
    u32 at = chain->count++;
    for (; at > 0 && chain->members[at - 1] > row; at--)
        chain->members[at] = chain->members[at - 1];
    chain->members[at] = row;
    if (row->replace)
        chain->row.replace = chain_replace;
}

static bool is_allocation(const ToolFunction *row)
{
    return row >= plugin_functions && row < plugin_functions + plugin_tool.allocation_count;
}

// A function that allocates has several names, and one event.
static const ToolFunction *known_allocation(const ToolFunction *known)
{
    for (u32 i = 0; i < count_of(known); i++) {
        const ToolFunction *row = is_chain(known) ? ((const Chain *)known)->members[i] : known;
        if (is_allocation(row))
            return row;
    }
    return NULL;
}

const ToolFunction *chain_join(const ToolFunction *known, const ToolFunction *other)
{
    if (is_allocation(other) && known_allocation(known))
        return is_chain(known) || known < other ? known : other;
    if (known == other || (is_chain(known) && has_member((const Chain *)known, other)))
        return known;
    const Chain *there = find(known, other);
    if (there)
        return &there->row;
    u32 count = count_of(known);
    Chain *chain = calloc(1, sizeof(*chain) + (count + 1) * sizeof(chain->members[0]));
    if (!chain)
        plugin_refuse("no memory for its functions");
    chain->row = (ToolFunction){
        .name = other->name, .before = chain_before, .after = chain_after, .left = chain_left,
    };
    for (u32 i = 0; i < count; i++)
        add_member(chain, is_chain(known) ? ((const Chain *)known)->members[i] : known);
    add_member(chain, other);
    chain->next = chains;
    chains = chain;
    return &chain->row;
}
