// SPDX-License-Identifier: MIT
//
// The table of hooked pcs. Everything here needs the engine lock.
#include <sys/mman.h>

#include "base/assert.h"
#include "base/map.h"
#include "engine/cache/cache.h"
#include "engine/redirect/redirect_internal.h"

Hook *redirect_hooks;
u64 redirect_generation;

static u32 hook_count;
static Map hook_of_pc;
static GuestAddr lowest = ~0ull, highest;

// A bit for every value of a pc's low 16 bits: almost all questions end here.
static u64 filter[1024];

static bool reserve_hooks(void)
{
    void *hooks = mmap(NULL, sizeof(Hook) * (u64)HOOKS_MAX, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hooks == MAP_FAILED)
        return false;
    redirect_hooks = hooks;
    return true;
}

void hooks_init(void)
{
    ASSERT(reserve_hooks());
}

static bool is_live(const Hook *hook)
{
    return hook->function || hook->return_site || hook->goes_to;
}

static Hook *find(GuestAddr pc)
{
    u64 index;
    if (!(filter[(u16)pc >> 6] >> (pc & 63) & 1) || !map_get(&hook_of_pc, pc, &index))
        return NULL;
    Hook *hook = &redirect_hooks[index];
    return is_live(hook) ? hook : NULL;
}

// The record of `pc`, live or not; NULL when there is no memory for one.
static Hook *record_of(GuestAddr pc)
{
    u64 index;
    if (map_get(&hook_of_pc, pc, &index))
        return &redirect_hooks[index];
    if (!redirect_hooks && !reserve_hooks())
        return NULL;
    if (hook_count == HOOKS_MAX || !map_put(&hook_of_pc, pc, hook_count))
        return NULL;
    Hook *hook = &redirect_hooks[hook_count++];
    hook->pc = pc;
    filter[(u16)pc >> 6] |= 1ull << (pc & 63);
    lowest = min_u64(lowest, pc);
    highest = max_u64(highest, pc);
    return hook;
}

// What counts where `function` is found, too.
static const ToolFunction *function_at(const Hook *hook, const ToolFunction *function,
                                       bool resolver)
{
    if (!hook->function)
        return function;
    if (tool->alias && hook->resolver == resolver)
        return tool->alias(hook->function, function);
    return hook->function <= function ? hook->function : function;
}

void hooks_add_entry(GuestAddr pc, u64 size_bytes, const ToolFunction *function, bool resolver,
                     GuestAddr named_at, const Mapping *mapping)
{
    Hook *hook = record_of(pc);
    const ToolFunction *counts = hook ? function_at(hook, function, resolver) : NULL;
    if (!hook || counts == hook->function)
        return;
    hook->resolver = resolver;
    hook->size_bytes = size_bytes;
    hook->named_at = named_at;
    hook->code_start = mapping->start;
    hook->code_end = mapping->end;
    hook->function = counts;
    redirect_stats.hooks++;
    cache_invalidate_insn(pc);
}

// The blocks that go on at `pc` go on in another way if that is hooked itself.
static void remake_jumps_to(GuestAddr pc)
{
    for (u32 i = 0; i < hook_count; i++) {
        if (redirect_hooks[i].goes_to == pc)
            cache_invalidate_insn(redirect_hooks[i].pc);
    }
}

HookAdded hooks_add_jump(GuestAddr pc, u64 size_bytes, GuestAddr target, bool wraps, bool resolver)
{
    Hook *hook = record_of(pc);
    if (!hook || hook->function || (hook->goes_to && hook->goes_to != target))
        return HOOK_TAKEN;
    if (hook->goes_to == target)
        return HOOK_THERE;
    hook->goes_to = target;
    hook->wraps = wraps;
    hook->resolver = resolver;
    hook->size_bytes = size_bytes;
    redirect_stats.hooks++;
    cache_invalidate_insn(pc);
    remake_jumps_to(pc);
    return HOOK_ADDED;
}

void hooks_forget_jumps(GuestAddr start, GuestAddr end)
{
    for (u32 i = 0; i < hook_count; i++) {
        Hook *hook = &redirect_hooks[i];
        if (hook->goes_to < start || hook->goes_to >= end)
            continue;
        hook->goes_to = 0;
        if (!hook->function)
            hook->resolver = false;
        cache_invalidate_insn(hook->pc);
    }
}

bool hooks_is_tools(GuestAddr pc)
{
    const Hook *hook = find(pc);
    return hook && hook->function;
}

bool hooks_add_return_site(GuestAddr pc, bool is_lean)
{
    Hook *hook = record_of(pc);
    if (!hook)
        return false;
    if (hook->return_site && (hook->is_lean_site || !is_lean))
        return true;
    hook->is_lean_site |= is_lean;
    hook->return_site = true;
    redirect_stats.return_sites++;
    cache_invalidate_insn(pc);
    return true;
}

void hooks_forget(GuestAddr start, GuestAddr end)
{
    if (start > highest || end <= lowest)
        return;
    bool any = false;
    for (u32 i = 0; i < hook_count; i++) {
        Hook *hook = &redirect_hooks[i];
        if (hook->pc < start || hook->pc >= end || !is_live(hook))
            continue;
        hook->function = NULL;
        hook->goes_to = 0;
        hook->resolver = false;
        hook->return_site = hook->return_site && hook->is_lean_site; // L2
        any = true;
    }
    if (any)
        __atomic_fetch_add(&redirect_generation, 1, __ATOMIC_RELEASE);
}

bool redirect_is_hooked(GuestAddr pc)
{
    return find(pc) != NULL;
}

bool redirect_is_entry(GuestAddr pc)
{
    const Hook *hook = find(pc);
    return hook && (hook->function || hook->goes_to);
}

bool redirect_is_own_entry(GuestAddr pc, GuestAddr target)
{
    const Hook *hook = find(target);
    return hook && (hook->function || hook->goes_to) && pc - target < hook->size_bytes;
}

bool redirect_find(GuestAddr pc, RedirectSite *ret_site)
{
    const Hook *hook = find(pc);
    if (!hook)
        return false;
    const ToolFunction *function = hook->function;
    bool is_lean = function && !hook->resolver && (function->lean_after || function->lean_before);
    bool is_quick = function && !hook->resolver && (function->quick || function->quick_at);
    bool is_traced = calls_is_traced(function) || (!function && calls_is_traced_anywhere());
    *ret_site = (RedirectSite){
        .hook = (u32)(hook - redirect_hooks),
        .entry = function || hook->resolver,
        .goes_to = function || hook->resolver ? 0 : hook->goes_to,
        .wraps = hook->wraps,
        .returns = hook->return_site,
        .is_lean_site = hook->is_lean_site,
        .fast = function && !hook->resolver && !is_traced &&
                (function->flags & TOOL_FUNCTION_FAST),
        .slow_return = is_traced,
        .replaces = function && !hook->resolver && function->replace,
        .quick = is_quick && !is_traced ? function : NULL,
        .lean = is_lean && !is_traced ? function : NULL,
    };
    return true;
}

GuestAddr tool_function_address(const ToolFunction *function)
{
    GuestAddr pc = 0;
    lock_acquire(&engine_lock);
    for (u32 i = 0; i < hook_count; i++) {
        if (redirect_hooks[i].function == function)
            pc = redirect_hooks[i].pc;
    }
    lock_release(&engine_lock);
    return pc;
}
