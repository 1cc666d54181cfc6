// SPDX-License-Identifier: MIT
//
// Frames that are left, and stacks that a thread changes to (docs/design/stack-marks.md). Called
// from blocks: general registers only.
#include "base/fill.h"
#include "tools/memcheck/memcheck.h"

enum { FRAME_MAX = 8 << 20 };   // more is a change of stacks
enum { RED_ZONE = 128 };

// What is given up includes the red zone of a function that calls nothing.
static void leave_frame(GuestAddr from, GuestAddr to)
{
    u64 size = to - (from - RED_ZONE);
    if (to > from && size < FRAME_MAX && shadow_is_mapped(from - RED_ZONE, size))
        fill_bytes(shadow_of(from - RED_ZONE), 0xff, size);
}

void stacks_loaded(ToolThread *thread, GuestAddr old_sp)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    GuestAddr sp = thread->gpr[RSP];
    if (old_sp >= mt->stack_lo && is_at_home(mt, sp))
        leave_frame(old_sp, sp);
}

// Code with a stack of its own may have kept in rbp where the other one is, as Erlang's does.
static bool changes_stack(ToolThread *thread, GuestAddr sp, GuestAddr frame)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    return frame - sp > PAGE_SIZE && is_at_home(mt, sp) != is_at_home(mt, frame);
}

// rsp goes up by so many bytes.
void stacks_leave_frame(ToolThread *thread, u64 size, GuestAddr unused)
{
    GuestAddr sp = thread->gpr[RSP];
    (void)unused;
    leave_frame(sp, sp + size);
}

// rsp becomes rbp, or what is so many bytes `above` it.
void stacks_leave_by_rbp(ToolThread *thread, u64 above, GuestAddr unused)
{
    GuestAddr sp = thread->gpr[RSP], frame = thread->gpr[RBP];
    (void)unused;
    if (!changes_stack(thread, sp, frame))
        leave_frame(sp, frame + above);
}

// (bytes << 1) for rsp going down by so many, (register << 1 | 1) by what is in it.
void stacks_enter_frame(ToolThread *thread, u64 what, GuestAddr unused)
{
    (void)unused;
    u64 size = what & 1 ? thread->gpr[what >> 1] : what >> 1;
    GuestAddr sp = thread->gpr[RSP] - size;
    if (size < FRAME_MAX && shadow_is_mapped(sp, size))
        fill_bytes(shadow_of(sp), 0xff, size);
}
