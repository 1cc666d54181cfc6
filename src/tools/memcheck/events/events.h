// SPDX-License-Identifier: MIT
//
// System calls and signals: what they read, write and interrupt.
#ifndef MUNINN_TOOLS_MEMCHECK_EVENTS_EVENTS_H
#define MUNINN_TOOLS_MEMCHECK_EVENTS_EVENTS_H

#include "engine/uring/uring.h"
#include "tools/memcheck/memcheck.h"

// --- signals.c
void signals_written(ToolThread *thread, GuestAddr start, u64 size);
void signals_delivered(ToolThread *thread, int sig, GuestAddr old_sp);
void signals_client_call(ToolThread *thread, GuestAddr old_sp);
void signals_returned(ToolThread *thread, GuestAddr handler_sp);
void signals_fault(ToolThread *thread, const siginfo_t *info);

// --- syscalls.c
// Marks what the kernel has written without a call since we last looked (io_uring). To be called
// before memory is called undefined; callable from the cache.
void syscalls_settle_rings(ToolThread *thread);
static inline void syscalls_settle(ToolThread *thread)
{
    if (UNLIKELY(__atomic_load_n(&uring_is_watched, __ATOMIC_ACQUIRE)))
        syscalls_settle_rings(thread);
}
// Whether the program has registered memory with a userfaultfd.
extern bool syscalls_have_userfaults;
void syscalls_before(ToolThread *thread, const ToolSyscall *call);
void syscalls_after(ToolThread *thread, const ToolSyscall *call);
void syscalls_answered(ToolThread *thread);

#endif
