// SPDX-License-Identifier: MIT
//
// The way from a block into a loaded tool. The gateway of tool calls has saved the general
// registers; here the vector and x87 state goes into the thread's xsave area, which nobody uses
// while the thread is in the cache, and the callback gets what a C function may expect.
#include "engine/run/run.h"
#include "tools/plugin/plugin_internal.h"

#include "base/raw_syscall.h"
#include "engine/gateway/gateway.h"

#include <linux/futex.h>
#include <sys/syscall.h>

_Thread_local const char *plugin_callback;

static u32 fork_waits; // a fork wants to find no thread in a callback
static u32 times_left; // that threads left one while it waited

static void wait_while(u32 *word, u32 value)
{
    raw_syscall6(SYS_futex, (u64)word, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}

static void wake_all(u32 *word)
{
    raw_syscall6(SYS_futex, (u64)word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
}

static void tell_fork(void)
{
    __atomic_fetch_add(&times_left, 1, __ATOMIC_SEQ_CST);
    wake_all(&times_left);
}

// Each thread first says that it is in, then looks whether a fork waits; a fork the other way
// round. One of the two sees the other.
void gate_enter(ToolThread *thread)
{
    PluginThread *t = plugin_thread(thread);
    if (t->in_callback) {
        t->in_callback++; // an event inside of one
        return;
    }
    for (;;) {
        __atomic_store_n(&t->in_callback, 1, __ATOMIC_SEQ_CST);
        if (LIKELY(!__atomic_load_n(&fork_waits, __ATOMIC_SEQ_CST)))
            return;
        __atomic_store_n(&t->in_callback, 0, __ATOMIC_SEQ_CST);
        tell_fork();
        wait_while(&fork_waits, 1);
    }
}

u32 gate_pause(ToolThread *thread)
{
    PluginThread *t = plugin_thread(thread);
    u32 depth = t->in_callback;
    if (depth) {
        t->in_callback = 1;
        gate_leave(thread);
    }
    return depth;
}

void gate_resume(ToolThread *thread, u32 depth)
{
    if (!depth)
        return;
    gate_enter(thread);
    plugin_thread(thread)->in_callback = depth;
}

void gate_leave(ToolThread *thread)
{
    PluginThread *t = plugin_thread(thread);
    u32 left = t->in_callback - 1;
    __atomic_store_n(&t->in_callback, left, __ATOMIC_SEQ_CST);
    if (UNLIKELY(!left && __atomic_load_n(&fork_waits, __ATOMIC_SEQ_CST)))
        tell_fork();
}

typedef struct Search {
    const ToolThread *self;
    bool is_any_inside;
} Search;

static void look(ToolThread *thread, void *arg)
{
    Search *search = arg;
    const PluginThread *t = plugin_thread(thread);
    if (thread != search->self && t && __atomic_load_n(&t->in_callback, __ATOMIC_SEQ_CST))
        search->is_any_inside = true;
}

void gate_close(ToolThread *thread)
{
    __atomic_store_n(&fork_waits, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        u32 seen = __atomic_load_n(&times_left, __ATOMIC_SEQ_CST);
        Search search = {.self = thread};
        tool_for_each_thread(look, &search);
        if (!search.is_any_inside)
            return;
        wait_while(&times_left, seen);
    }
}

void gate_open(void)
{
    __atomic_store_n(&fork_waits, 0, __ATOMIC_SEQ_CST);
    wake_all(&fork_waits);
}

static void save_vectors(ToolThread *thread)
{
    static const u32 mxcsr = 0x1f80;
    u64 mask = gateway_xsave_mask();
    __asm__ volatile("xsave64 (%0)\n\tfninit\n\tldmxcsr %1"
                     :
                     : "r"(thread->xsave), "m"(mxcsr), "a"((u32)mask), "d"((u32)(mask >> 32))
                     : "memory");
}

static void load_vectors(ToolThread *thread)
{
    u64 mask = gateway_xsave_mask();
    __asm__ volatile("xrstor64 (%0)"
                     :
                     : "r"(thread->xsave), "a"((u32)mask), "d"((u32)(mask >> 32))
                     : "memory");
}

static void run(ToolThread *thread, MuninnInsnFn *fn, void *data, GuestAddr value, const char *what)
{
    gate_enter(thread);
    save_vectors(thread);
    plugin_callback = what;
    plugin_thread(thread)->is_inside = 1;
    fn(handle_of(thread), data, value);
    plugin_thread(thread)->is_inside = 0;
    plugin_callback = NULL;
    load_vectors(thread);
    gate_leave(thread);
}

void gate_call(ToolThread *thread, u64 arg, GuestAddr value)
{
    const PluginCall *call = (const PluginCall *)arg;
    run(thread, call->fn, call->data, value, "a call in a block");
}

// Outside of the cache the client's vector state is in the xsave area already.
void gate_run(ToolThread *thread, MuninnInsnFn *fn, void *data, const char *what)
{
    if (thread->dispatch.in_cache) {
        run(thread, fn, data, 0, what);
        return;
    }
    gate_enter(thread);
    plugin_callback = what;
    plugin_thread(thread)->is_inside = 1;
    fn(handle_of(thread), data, 0);
    plugin_thread(thread)->is_inside = 0;
    plugin_callback = NULL;
    gate_leave(thread);
}

void gate_call_hot(ToolThread *thread, u64 arg, GuestAddr value)
{
    const PluginCall *call = (const PluginCall *)arg;
    call->fn(handle_of(thread), call->data, value);
}
