// SPDX-License-Identifier: MIT
//
// Frames that are left, and stacks that a thread changes to (docs/design/stack-marks.md). Called
// from blocks: general registers only.
//
// A thread is at home on the stack that it began with. Other stacks may lie anywhere: in blocks of
// the heap, side by side in one mapping, in a live frame of another one. So what lies between two
// stack pointers is a frame that was left only if both are on one stack: the tags of return
// addresses tell (calltags_load_sp()), and the bounds of the home.
#include <sys/syscall.h>

#include "base/fill.h"
#include "base/raw_syscall.h"
#include "engine/calltags/calltags.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

enum { RED_ZONE = 128 };
enum { SAVED_BYTES = 256 };     // registers that a change of stacks saves and restores
enum { POPPED_BY_LEAVE = 8 };
enum { FRAME_MIN = 512 };       // what is closer is no other stack

// What is given up includes the red zone of a function that calls nothing.
static void leave_frame(GuestAddr from, GuestAddr to)
{
    u64 size = to - (from - RED_ZONE);
    if (to > from && shadow_is_mapped(from - RED_ZONE, size))
        fill_bytes(shadow_of(from - RED_ZONE), 0xff, size);
}

// Where a stack waits that is gone on with at sp: the closest below; NULL: that is not known.
static GuestAddr *left_place(MemcheckThread *mt, GuestAddr sp)
{
    GuestAddr *found = NULL;
    for (u32 i = 0; i < ARRAY_LEN(mt->left); i++) {
        if (mt->left[i] <= sp && mt->left[i] && (!found || mt->left[i] > *found))
            found = &mt->left[i];
    }
    bool is_same = found && calltags_is_up(*found, sp) &&
                   is_in_home(mt, sp) == is_in_home(mt, *found);
    return is_same ? found : NULL;
}

// Where stacks wait, and the thread that left them (the low 16 bits): the last of each place. Read
// and written by all threads without a lock: what is lost is found out another time.
static u64 waiting[1024];
static bool migrates; // stacks go from thread to thread: true for good

static u64 *waiting_at(GuestAddr sp)
{
    return &waiting[sp / SAVED_BYTES % ARRAY_LEN(waiting)];
}

static bool was_left_by_another(ToolThread *thread, GuestAddr sp)
{
    for (GuestAddr at = sp - SAVED_BYTES; at <= sp; at += SAVED_BYTES) {
        u64 word = __atomic_load_n(waiting_at(at), __ATOMIC_RELAXED);
        if (sp - (word >> 16) <= SAVED_BYTES && (u16)word != (u16)thread->thread.tid)
            return true;
    }
    return false;
}

// Another thread may have left the stack at sp, which this thread goes on with, so that its own
// notes tell nothing of it: goroutines, which lie side by side. What one has called before it was
// left looks like a frame of its lower neighbour that is gone on with.
static bool may_have_migrated(ToolThread *thread, GuestAddr sp)
{
    if (is_in_home(memcheck_thread(thread), sp))
        return false;
    if (!__atomic_load_n(&migrates, __ATOMIC_RELAXED) && was_left_by_another(thread, sp))
        __atomic_store_n(&migrates, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&migrates, __ATOMIC_RELAXED);
}

static void note_left(ToolThread *thread, GuestAddr sp)
{
    MemcheckThread *mt = memcheck_thread(thread);
    __atomic_store_n(waiting_at(sp), sp << 16 | (u16)thread->thread.tid, __ATOMIC_RELAXED);
    for (u32 i = 0; i < ARRAY_LEN(mt->left); i++) {
        if (!mt->left[i]) {
            mt->left[i] = sp;
            return;
        }
    }
    mt->left[mt->left_turn++ % ARRAY_LEN(mt->left)] = sp;
}

// A handler's frames on an alternate stack are left for good. Home is left with its innermost frame
// at `left_sp`. It is gone on with there, or further up, where a frame has called another; anywhere
// else at home is a stack that lies in one of its frames.
static void change_stack(ToolThread *thread, GuestAddr old_sp, GuestAddr sp)
{
    MemcheckThread *mt = memcheck_thread(thread);
    bool is_alternate =
        old_sp - (GuestAddr)thread->signal.altstack.ss_sp < thread->signal.altstack.ss_size;
    bool has_migrated = may_have_migrated(thread, sp);
    GuestAddr *left = left_place(mt, sp);
    if (left) { // a jump may go to a frame further up
        if (!has_migrated)
            leave_frame(*left, sp);
        *left = 0;
    }
    if (!is_alternate)
        note_left(thread, old_sp);
    if (is_at_home(mt, old_sp))
        mt->left_sp = old_sp;
    if (is_in_home(mt, sp))
        mt->is_elsewhere = mt->left_sp && sp > mt->left_sp + SAVED_BYTES &&
                           !calltags_has_called(sp, mt->left_sp);
}

void stacks_loaded(ToolThread *thread, GuestAddr old_sp, bool same)
{
    MemcheckThread *mt = memcheck_thread(thread);
    GuestAddr sp = thread->gpr[RSP], *left;
    if (is_in_home(mt, old_sp) != is_in_home(mt, sp))
        same = false;
    if (sp - old_sp > FRAME_MIN && may_have_migrated(thread, sp))
        same = false;
    // What one has called before it was left looks like a frame that is left.
    if (same && sp - old_sp > FRAME_MIN && (left = left_place(mt, sp)) && *left > old_sp)
        same = false;
    if (same)
        leave_frame(old_sp, sp);
    else
        change_stack(thread, old_sp, sp);
}

void stacks_interrupted(ToolThread *thread, GuestAddr old_sp)
{
    if (old_sp - thread->gpr[RSP] > KERNEL_FRAME_MAX)
        change_stack(thread, old_sp, thread->gpr[RSP]);
}

void stacks_interruption_ended(ToolThread *thread, GuestAddr handler_sp)
{
    if (thread->gpr[RSP] - handler_sp > KERNEL_FRAME_MAX)
        change_stack(thread, handler_sp, thread->gpr[RSP]);
}

// rsp goes up by so many bytes.
void stacks_leave_frame(ToolThread *thread, u64 size, GuestAddr unused)
{
    GuestAddr sp = thread->gpr[RSP];
    (void)unused;
    leave_frame(sp, sp + size);
}

// Code with a stack of its own may have kept in rbp where the other one is, as Erlang's does and
// __morestack.
static bool stays_on_stack(ToolThread *thread, GuestAddr sp, GuestAddr to)
{
    MemcheckThread *mt = memcheck_thread(thread);
    if (to - sp <= PAGE_SIZE)
        return true;
    if (calltags_load_sp(sp, to, false) && is_in_home(mt, sp) == is_in_home(mt, to) &&
        !may_have_migrated(thread, to))
        return true;
    change_stack(thread, sp, to);
    return false;
}

// rsp becomes rbp, or what is so many bytes `above` it.
void stacks_leave_by_rbp(ToolThread *thread, u64 above, GuestAddr unused)
{
    GuestAddr sp = thread->gpr[RSP], to = thread->gpr[RBP] + above;
    (void)unused;
    if (stays_on_stack(thread, sp, to))
        leave_frame(sp, to);
    else if (above == POPPED_BY_LEAVE && shadow_is_mapped(to - above, above))
        fill_bytes(shadow_of(to - above), 0xff, above);
}

// (bytes << 1) for rsp going down by so many, (register << 1 | 1) by what is in it.
void stacks_enter_frame(ToolThread *thread, u64 what, GuestAddr unused)
{
    enum { FRAME_MAX = 8 << 20 };
    (void)unused;
    u64 size = what & 1 ? thread->gpr[what >> 1] : what >> 1;
    GuestAddr sp = thread->gpr[RSP] - size;
    if (size < FRAME_MAX && shadow_is_mapped(sp, size))
        fill_bytes(shadow_of(sp), 0xff, size);
}

// ------------------------------------------------------------------- guessed bounds

// Whether the kernel has given memory to each page, to some or to none of them: none was touched
// that has none. What the kernel refuses counts as some.
StackPages stacks_pages(GuestAddr start, GuestAddr end)
{
    enum { CHUNK = 128 };
    u8 resident[CHUNK];
    u64 count = 0;
    for (GuestAddr at = start; at < end; at += CHUNK * PAGE_SIZE) {
        u64 size = min_u64(end - at, CHUNK * PAGE_SIZE);
        if (raw_syscall3(SYS_mincore, at, size, (u64)resident) != 0)
            return STACK_SOME_TOUCHED;
        for (u64 i = 0; i < size / PAGE_SIZE; i++)
            count += resident[i] & 1;
    }
    return count == 0                           ? STACK_NONE_TOUCHED
           : count * PAGE_SIZE == end - start ? STACK_ALL_TOUCHED
                                                : STACK_SOME_TOUCHED;
}

// The bounds of the stack are not known any more. What was marked for it and nobody has touched is
// fresh memory as any other.
void stacks_forget_bounds(ToolThread *thread)
{
    MemcheckThread *mt = memcheck_thread(thread);
    GuestAddr end = PAGE_DOWN(min_u64(thread->gpr[RSP] - RED_ZONE, mt->first_sp));
    if (!mt->is_guessed)
        return;
    for (GuestAddr page = PAGE_UP(mt->stack_lo); page < end; page += PAGE_SIZE) {
        if (stacks_pages(page, page + PAGE_SIZE) == STACK_NONE_TOUCHED)
            shadow_clear_v(page, PAGE_SIZE);
    }
    mt->is_guessed = false;
    mt->stack_lo = mt->stack_hi = mt->first_sp;
    thread->tool.store_below = ~0ull;
}

// A frame that was left has touched what it had, down from the stack pointer: what is beyond a page
// that was not touched is something else, and so the guess was wrong.
bool stacks_guess_holds(ToolThread *thread, GuestAddr address)
{
    if (stacks_pages(PAGE_DOWN(address), PAGE_UP(thread->gpr[RSP])) == STACK_ALL_TOUCHED)
        return true;
    stacks_forget_bounds(thread);
    return false;
}
