// SPDX-License-Identifier: MIT
//
// Where the gateways are, and in which of them a thread was interrupted.
#include "engine/gateway/gateway_internal.h"

#include "base/assert.h"

static bool between(u64 pc, CodePtr first, CodePtr last)
{
    return pc >= (u64)first && pc < (u64)last;
}

GatewayPlace gateway_place(u64 host_pc)
{
    if (host_pc - GATEWAY_START >= GATEWAY_SIZE)
        return GATEWAY_NOT;
    if (between(host_pc, gateway.entering, gateway.entering_end))
        return GATEWAY_ENTERING;
    if (between(host_pc, gateway.resuming, gateway.resuming_end))
        return GATEWAY_RESUMING;
    if (between(host_pc, gateway.syscall_begin, gateway.syscall_insn + 1))
        return GATEWAY_SYSCALL_BEFORE;
    for (unsigned i = 0; i < TOOL_CALLS; i++) {
        if (between(host_pc, gateway.tool_return[i], gateway.tool_return_end[i]))
            return GATEWAY_TOOL_RETURN;
        if (between(host_pc, gateway.tool_call[i], gateway.tool_return[i]))
            return GATEWAY_TOOL_CALL;
    }
    if (between(host_pc, gateway.lookup, gateway.lookup_end) ||
        between(host_pc, gateway.tool_return_end[1], gateway.quick_careful_end) ||
        between(host_pc, gateway.stores, gateway.stores_end))
        return GATEWAY_LOOKUP;
    return GATEWAY_LEAVING;
}

u64 gateway_abort_pc(GatewayPlace place)
{
    ASSERT(place == GATEWAY_ENTERING || place == GATEWAY_RESUMING);
    return (u64)(place == GATEWAY_ENTERING ? gateway.abort_entering : gateway.abort_resuming);
}

u64 gateway_restart_pc(void)
{
    return (u64)gateway.restart;
}

u64 gateway_taken_out_pc(void)
{
    return (u64)gateway.taken_out;
}

CodePtr gateway_leave(ExitReason reason)
{
    return gateway.leave[reason];
}

CodePtr gateway_lookup_miss(void)
{
    return gateway.lookup_miss;
}

CodePtr gateway_far_return_miss(void)
{
    return gateway.far_return_miss;
}

CodePtr gateway_return_by_table(void)
{
    return gateway.return_by_table;
}

CodePtr gateway_return_miss(void)
{
    return gateway.return_miss;
}

CodePtr gateway_version_guard(void)
{
    return gateway.version_guard;
}

CodePtr gateway_version_exit(void)
{
    return gateway.version_exit;
}

CodePtr gateway_version_indirect(void)
{
    return gateway.version_indirect;
}

CodePtr gateway_version_miss(void)
{
    return gateway.version_miss;
}

CodePtr gateway_tool_call(void)
{
    return gateway.tool_call[0];
}

CodePtr gateway_quick_call(void)
{
    return gateway.tool_call[1];
}

CodePtr gateway_brief_call(void)
{
    return gateway.tool_call[2];
}

u64 gateway_xsave_mask(void)
{
    return gateway.xsave_mask;
}
