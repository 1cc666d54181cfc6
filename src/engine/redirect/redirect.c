// SPDX-License-Identifier: MIT
//
// What happens at a hook outside the cache, and the watch over what the client
// maps.
//
// Activations leave the list when they return. One that never does (longjmp, an
// exception) is recognised by its return address, which the stack does not hold
// any more; a live one on another stack (a handler's alternate stack, a
// coroutine) is not mistaken for it.
#include "engine/redirect/redirect.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"
#include "engine/gateway/gateway.h"
#include "engine/redirect/redirect_internal.h"
#include "engine/redirect/synonyms.h"

#define FIRST_CAPACITY 256u

RedirectStats redirect_stats;

// Whether every thread needs its record from the start. The program's own functions alone need one
// only where they wrap an indirect function.
static bool tool_is_active(void)
{
    return tool->function_count != 0;
}

// ---------------------------------------------------------------- threads

static bool make_record(ThreadCtx *ctx)
{
    RedirectThread *t = pages_map(sizeof *t);
    if (!t)
        return false;
    t->activations = pages_map(FIRST_CAPACITY * sizeof(Activation));
    if (!t->activations) {
        pages_unmap(t, sizeof *t);
        return false;
    }
    t->capacity = FIRST_CAPACITY;
    ctx->redirect.thread = t;
    ctx->redirect.count = 0;
    lean_thread_start(ctx);
    return true;
}

bool redirect_thread_start(ThreadCtx *ctx)
{
    ctx->redirect.armed = 0;
    ctx->redirect.wrapped_original = 0;
    return !tool_is_active() || make_record(ctx);
}

static void tell_left(ThreadCtx *ctx, Activation a);

void redirect_thread_ending(ThreadCtx *ctx)
{
    while (ctx->redirect.thread && ctx->redirect.count) {
        Activation a = ctx->redirect.thread->activations[--ctx->redirect.count];
        tell_left(ctx, a);
    }
}

void redirect_thread_end(ThreadCtx *ctx)
{
    RedirectThread *t = ctx->redirect.thread;
    if (!t)
        return;
    ctx->redirect.thread = NULL;
    pages_unmap(t->activations, t->capacity * sizeof(Activation));
    pages_unmap(t, sizeof *t);
}

// ---------------------------------------------------------------- mappings

static int open_same_file(const Mapping *m)
{
    struct stat st;
    i64 fd = raw_syscall4(SYS_openat, (u64)AT_FDCWD, (u64)m->name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&st) == 0 && st.st_dev == m->dev &&
        st.st_ino == m->inode)
        return (int)fd;
    raw_syscall1(SYS_close, (u64)fd);
    return -1;
}

static u64 now_ns(void)
{
    struct timespec t;
    raw_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (u64)&t);
    return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

// Compares the program's specifications with all objects but what is mapped at [start, end).
static void match_wraps_everywhere(GuestAddr start, GuestAddr end)
{
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m)) {
        bool is_excluded = m->start < end && m->end > start;
        int fd = m->name && m->prot & PROT_EXEC && !is_excluded ? open_same_file(m) : -1;
        if (fd < 0)
            continue;
        names_match_wraps(fd, m);
        raw_syscall1(SYS_close, (u64)fd);
    }
}

static void on_code_mapped(const Mapping *mapping, int fd)
{
    if (!mapping->name)
        return;
    u64 start = now_ns();
    int opened = fd < 0 ? open_same_file(mapping) : -1;
    bool has_wraps = (fd >= 0 || opened >= 0) &&
                     names_match_file(fd >= 0 ? fd : opened, mapping);
    if (opened >= 0)
        raw_syscall1(SYS_close, (u64)opened);
    if (has_wraps)
        match_wraps_everywhere(0, 0);
    redirect_stats.ns += now_ns() - start;
}

void redirect_init(const Options *options)
{
    synonyms_init(options);
    calls_trace(options->trace_malloc);
    names_require(&options->require_text_symbol);
    if (tool_is_active())
        hooks_init();
    names_init();
    wraps_init();
    redirect_options_changed(options);
    aspace_code_mapped_hook = on_code_mapped;
}

void redirect_options_changed(const Options *options)
{
    wraps_set_words(options->verbosity > 0, options->trace & TRACE_REDIR);
}

void redirect_unmapped(GuestAddr start, GuestAddr end)
{
    hooks_forget(start, end);
    if (!wraps_forget(start, end))
        return;
    hooks_forget_jumps(start, end);
    match_wraps_everywhere(start, end); // others may fit what they were for
}

// ---------------------------------------------------------------- activations

static bool return_address_is_gone(const Activation *a)
{
    u64 word;
    return !guest_read(a->sp, &word, sizeof word) || word != a->call.return_address;
}

// The call was left otherwise than by a return. It is in the list no more, which the handler may
// move.
static void tell_left(ThreadCtx *ctx, Activation a)
{
    const ToolFunction *function = a.call.function;
    if (function && function->left && !redirect_hooks[a.hook].resolver)
        function->left(ctx, &a.call);
}

static void remove_activation(ThreadCtx *ctx, u64 index)
{
    Activation *at = &ctx->redirect.thread->activations[index];
    memmove(at, at + 1, (ctx->redirect.count - index - 1) * sizeof(*at));
    ctx->redirect.count--;
}

// Innermost first.
static void drop_gone(ThreadCtx *ctx)
{
    for (u64 i = ctx->redirect.count; i-- > 0;) {
        Activation a = ctx->redirect.thread->activations[i];
        if (!return_address_is_gone(&a))
            continue;
        remove_activation(ctx, i);
        tell_left(ctx, a);
    }
}

// Room for one more. Without memory for it the call goes unseen.
static bool make_room(ThreadCtx *ctx)
{
    RedirectThread *t = ctx->redirect.thread;
    if (ctx->redirect.count < t->capacity)
        return true;
    drop_gone(ctx);
    if (ctx->redirect.count < t->capacity / 2)
        return true;
    u64 bytes = t->capacity * sizeof(Activation);
    Activation *larger = pages_resize(t->activations, bytes, 2 * bytes);
    if (!larger)
        return false;
    t->activations = larger;
    t->capacity *= 2;
    return true;
}

static Activation *top_activation(ThreadCtx *ctx)
{
    return ctx->redirect.count ? &ctx->redirect.thread->activations[ctx->redirect.count - 1] : NULL;
}

// Takes from the top what this call shows to be over: the same stack slot is
// used again, or a lower one has lost its return address. A tail call shares
// slot and return address with its caller, which stays.
static void drop_abandoned(ThreadCtx *ctx, u32 hook, GuestAddr return_address)
{
    u64 sp = ctx->gpr[RSP];
    for (Activation *top; (top = top_activation(ctx)) && top->sp <= sp;) {
        if (top->sp == sp && top->call.return_address == return_address && top->hook != hook)
            return;
        if (top->sp < sp && !return_address_is_gone(top))
            return;
        Activation a = *top;
        ctx->redirect.count--;
        tell_left(ctx, a);
    }
}

static void know_return_site(RedirectThread *t, GuestAddr pc)
{
    lock_acquire(&engine_lock);
    hooks_add_return_site(pc, false);
    if (t->generation != redirect_generation)
        memset(t->known, 0, sizeof t->known);
    t->generation = redirect_generation;
    *known_slot(t, pc) = pc;
    lock_release(&engine_lock);
}

static void begin_wrapped(ThreadCtx *ctx, u32 hook, GuestAddr return_address)
{
    drop_abandoned(ctx, hook, return_address);
    if (!make_room(ctx))
        return;
    if (!is_known_site(ctx->redirect.thread, return_address))
        know_return_site(ctx->redirect.thread, return_address);
    activation_push(ctx, hook, return_address);
    u64 index = ctx->redirect.count - 1;
    ToolCall call = top_activation(ctx)->call;
    if (redirect_hooks[hook].resolver)
        return;
    call_before(ctx, &call);
    ctx->redirect.thread->activations[index].call = call;
}

static void finish_resolver(ThreadCtx *ctx, const Activation *a)
{
    lock_acquire(&engine_lock);
    const Hook *hook = &redirect_hooks[a->hook];
    GuestAddr end, function = ctx->gpr[RAX];
    bool is_code = aspace_executable(function, &end);
    if (is_code && a->call.function)
        hooks_add_entry(function, 0, a->call.function, false, a->call.entry,
                        aspace_find(function));
    else if (is_code && hook->goes_to && hook->goes_to != function)
        hooks_add_jump(function, 0, hook->goes_to, hook->wraps, false);
    lock_release(&engine_lock);
}

static void end_call(ThreadCtx *ctx, ToolCall *call)
{
    call_after(ctx, call);
    if (calls_is_traced(call->function))
        calls_print(call, ctx->gpr[RAX]);
}

// Whether both are in the stack that the thread has from its start: the one that the kernel made,
// or libc, which puts the thread's own data into the same mapping. Other stacks may be neighbours
// in one mapping, and what is called there goes on.
static bool are_on_own_stack(const ThreadCtx *ctx, GuestAddr inner, GuestAddr outer)
{
    lock_acquire(&engine_lock);
    const Mapping *m = aspace_find(outer);
    bool is_own = m && inner >= m->start && inner < m->end &&
                  ((m->name && strcmp(m->name, "[stack]") == 0) ||
                   (ctx->client_fs >= m->start && ctx->client_fs < m->end));
    lock_release(&engine_lock);
    return is_own;
}

// The call at `outer` returns: those that it has made and that have not returned never will.
static void drop_inner(ThreadCtx *ctx, u64 outer)
{
    for (u64 i = ctx->redirect.count; i-- > outer + 1;) {
        Activation a = ctx->redirect.thread->activations[i];
        GuestAddr sp = ctx->redirect.thread->activations[outer].sp;
        if (a.sp >= sp || !are_on_own_stack(ctx, a.sp, sp))
            continue;
        remove_activation(ctx, i);
        tell_left(ctx, a);
    }
}

// Innermost first.
void redirect_returned(ThreadCtx *ctx, GuestAddr pc)
{
    for (u64 i = ctx->redirect.count; i-- > 0;) {
        Activation *list = ctx->redirect.thread->activations;
        Activation a = list[i];
        if (a.sp + 8 != ctx->gpr[RSP] || a.call.return_address != pc)
            continue;
        drop_inner(ctx, i);
        remove_activation(ctx, i);
        if (redirect_hooks[a.hook].resolver)
            finish_resolver(ctx, &a);
        else
            end_call(ctx, &a.call);
    }
}

static void begin_lean(ThreadCtx *ctx, u32 hook, GuestAddr return_address)
{
    if (redirect_hooks[hook].function->lean_before) {
        lean_call_before(ctx, hook, return_address);
        return;
    }
    if (return_address == GATEWAY_NOWHERE)
        return; // the engine's own call
    lock_acquire(&engine_lock);
    bool is_hooked = hooks_add_return_site(return_address, true);
    lock_release(&engine_lock);
    if (!is_hooked)
        return;
    *lean_slot(ctx, return_address) = return_address;
    lean_begin(ctx, hook);
}

// ---------------------------------------------------------------- hooks

static void return_from_replaced(ThreadCtx *ctx, GuestAddr return_address)
{
    ctx->pc = return_address;
    if (ctx->callstack.bottom)
        callstack_ret_miss(&ctx->callstack, ctx->gpr[RSP]);
    if (calltags_wanted)
        calltags_clear(ctx->gpr[RSP]);
    ctx->gpr[RSP] += 8;
}

typedef enum EntryResult { ENTRY_DONE, ENTRY_ORIGINAL, ENTRY_FAULT } EntryResult;

// The row has handlers that run around the function when `replace` has declined.
static bool is_wrapped_too(const ToolFunction *function)
{
    return function->before || function->after || function->left;
}

// ENTRY_ORIGINAL: the original is to run now.
static EntryResult run_entry(ThreadCtx *ctx, u32 index, Step done)
{
    const Hook *hook = &redirect_hooks[index];
    GuestAddr return_address;

    if (done == STEP_ORIGINAL || done == STEP_WRAPPED || !(hook->function || hook->resolver))
        return ENTRY_ORIGINAL;
    if (!guest_read(ctx->gpr[RSP], &return_address, sizeof return_address))
        return ENTRY_FAULT;
    if (done == STEP_REPLACED) {
        return_from_replaced(ctx, return_address);
        return ENTRY_DONE;
    }
    if (!hook->resolver && (hook->function->lean_after || hook->function->lean_before)) {
        begin_lean(ctx, index, return_address);
        if (calls_is_traced(hook->function))
            begin_wrapped(ctx, index, return_address);
        return ENTRY_ORIGINAL;
    }
    if (hook->resolver || !hook->function->replace) {
        begin_wrapped(ctx, index, return_address);
        return ENTRY_ORIGINAL;
    }
    ToolCall call;
    call_begin(ctx, &call, hook, return_address);
    u64 result = hook->function->replace(ctx, &call);
    if (call.run_original) {
        call_set_args(ctx, &call);
        if (is_wrapped_too(hook->function))
            begin_wrapped(ctx, index, return_address);
        return ENTRY_ORIGINAL;
    }
    if (calls_is_traced(hook->function))
        calls_print(&call, result);
    ctx->gpr[RAX] = result;
    return_from_replaced(ctx, return_address);
    return ENTRY_DONE;
}

bool redirect_run(ThreadCtx *ctx)
{
    u32 index = ctx->gateway.exit_link & ~(REDIRECT_BEGUN | REDIRECT_DONE);
    Step done = ctx->gateway.exit_link & REDIRECT_DONE    ? STEP_REPLACED
                : ctx->gateway.exit_link & REDIRECT_BEGUN ? ctx->redirect.thread->step
                                                  : STEP_NONE;
    const Hook *hook = &redirect_hooks[index];

    redirect_stats.slow_exits++;
    ctx->pc = hook->pc;
    if (!ctx->redirect.thread && !make_record(ctx)) {
        ctx->redirect.armed = 1; // without memory for it the call goes unseen
        return true;
    }
    if (hook->return_site && done != STEP_RETURNED) {
        lean_end(ctx, hook->pc);
        redirect_returned(ctx, hook->pc);
    }
    EntryResult result = run_entry(ctx, index, done);
    if (result == ENTRY_ORIGINAL)
        ctx->redirect.armed = 1;
    return result != ENTRY_FAULT;
}

void redirect_note_interrupted(ThreadCtx *ctx)
{
    if (!ctx->gateway.guard_failed)
        return;
    lock_acquire(&engine_lock);
    if (redirect_is_entry(ctx->pc))
        ctx->redirect.armed = 1;
    lock_release(&engine_lock);
}
