// SPDX-License-Identifier: MIT
//
// What tools may ask the engine; see toolapi/toolapi.h.
#include <stdarg.h>
#include <string.h>

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/redirect/redirect.h"
#include "engine/run/run.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"

u32 tool_context(ToolThread *thread, GuestAddr pc)
{
    return calltags_thread_context(thread, pc);
}

size_t tool_context_frames(u32 context, GuestAddr *ret_frames, size_t max)
{
    return context_frames(context, ret_frames, max);
}

bool tool_call_client(ToolThread *thread, GuestAddr function, const u64 *args, unsigned count,
                      u64 *ret_result)
{
    static const u8 argument_register[6] = {RDI, RSI, RDX, RCX, R8, R9};
    enum { RED_ZONE = 128 };
    const u64 return_address = GATEWAY_NOWHERE;
    u64 sp = ((thread->gpr[RSP] - RED_ZONE) & ~15ull) - 8;
    if (count > ARRAY_LEN(argument_register) || !guest_write(sp, &return_address, 8))
        return false;

    u64 gpr[GPR_COUNT];
    memcpy(gpr, thread->gpr, sizeof gpr);
    GuestAddr pc = thread->pc;
    u64 flags = thread->flags;
    u32 exit_link = thread->gateway.exit_link;

    for (unsigned i = 0; i < count; i++)
        thread->gpr[argument_register[i]] = args[i];
    thread->gpr[RAX] = 0; // a variadic function gets no vector arguments
    thread->gpr[RSP] = sp;
    thread->pc = function;
    if (tool->client_call)
        tool->client_call(thread, gpr[RSP]);
    run_until_return(thread, sp, gpr[RSP]);
    if (thread->redirect.count && thread->pc == GATEWAY_NOWHERE)
        redirect_returned(thread, GATEWAY_NOWHERE); // of a function that was tail-called

    *ret_result = thread->gpr[RAX];
    memcpy(thread->gpr, gpr, sizeof gpr);
    if (tool->client_return)
        tool->client_return(thread, sp + sizeof(return_address));
    thread->pc = pc;
    thread->flags = flags;
    thread->gateway.exit_link = exit_link;
    thread->gateway.exit_reason = EXIT_RESUME;
    return true;
}

void tool_log(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line_list(format, arguments);
    va_end(arguments);
}

void tool_for_each_thread(void (*fn)(ToolThread *thread, void *arg), void *arg)
{
    ctx_for_each(fn, arg);
}
