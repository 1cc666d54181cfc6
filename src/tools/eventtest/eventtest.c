// SPDX-License-Identifier: MIT
//
// A tool for the tests of the tool interface, shown in no help: uses every hook
// and every primitive, and prints what it was told.
#include "tools/eventtest/eventtest.h"

#include "engine/syscall/syscall.h"

EventSums event_sums;

static u64 bytes_in_arena(GuestAddr start, GuestAddr end)
{
    u64 lo = max_u64(start, ARENA_START), hi = min_u64(end, ARENA_END);
    return lo < hi ? hi - lo : 0;
}

static void mapped(GuestAddr start, GuestAddr end, u32 prot)
{
    u64 *sum = prot ? &event_sums.mapped_bytes : &event_sums.protected_bytes;
    *sum += bytes_in_arena(start, end);
}

static void unmapped(GuestAddr start, GuestAddr end)
{
    event_sums.unmapped_bytes += bytes_in_arena(start, end);
}

static void syscall_before(ToolThread *thread, const ToolSyscall *call)
{
    (void)thread;
    event_sums.calls_before += call->nr == NR_getppid;
}

static void syscall_after(ToolThread *thread, const ToolSyscall *call)
{
    (void)thread;
    event_sums.calls_after += call->nr == NR_getppid && call->result > 0;
}

static void signal_delivered(ToolThread *thread, int sig, GuestAddr old_sp)
{
    (void)thread;
    (void)old_sp;
    __atomic_fetch_add(&event_sums.signals, sig == 10, __ATOMIC_RELAXED);
}

// Knows MALLOCLIKE_BLOCK and the memory checker's: the answer is the sum of the arguments.
static bool request(ToolThread *thread, const u64 args[6], u64 *ret_result)
{
    (void)thread;
    if (args[0] != 0x1301 && args[0] >> 16 != ('M' << 8 | 'C'))
        return false;
    *ret_result = args[1] + args[2] + args[3] + args[4] + args[5];
    return true;
}

static void thread_start(ToolThread *thread)
{
    (void)thread;
    __atomic_fetch_add(&event_sums.threads_started, 1, __ATOMIC_RELAXED);
}

static void thread_end(ToolThread *thread)
{
    (void)thread;
    __atomic_fetch_add(&event_sums.threads_ended, 1, __ATOMIC_RELAXED);
}

static void insn(ToolBlock *block, const ToolInsn *guest)
{
    ToolAccess access[8];
    unsigned n = tool_accesses(guest, access, ARRAY_LEN(access));
    for (unsigned i = 0; i < n; i++)
        tool_call_access(block, &access[i], eventtest_access,
                         access[i].size_bytes | (u64)access[i].writes << 32);
    if (guest->mnemonic == ZYDIS_MNEMONIC_PAUSE)
        tool_call(block, eventtest_pause, 1);
}

static void finish(void)
{
    const EventSums *s = &event_sums;
    tool_log("eventtest: mapped %lu unmapped %lu closed %lu", s->mapped_bytes, s->unmapped_bytes,
             s->protected_bytes);
    tool_log("eventtest: calls %lu %lu signals %lu", s->calls_before, s->calls_after, s->signals);
    tool_log("eventtest: threads %lu %lu", s->threads_started, s->threads_ended);
    tool_log("eventtest: reads %lu writes %lu addresses %lx sizes %lu", s->reads, s->writes,
             s->address_xor, s->size_sum);
    tool_log("eventtest: pauses %lu", s->calls_seen);
}

const Tool tool_eventtest = {
    .name = "eventtest",
    .summary = "use every hook of the tool interface",
    .needs = TOOL_NEEDS_FLAGS,
    .gives = TOOL_GIVES_DESCRIPTORS,
    .finish = finish,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .insn = insn,
    .syscall_before = syscall_before,
    .syscall_after = syscall_after,
    .mapped = mapped,
    .unmapped = unmapped,
    .signal = signal_delivered,
    .request = request,
};
