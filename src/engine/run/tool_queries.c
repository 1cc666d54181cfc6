// SPDX-License-Identifier: MIT
//
// What tools may ask the engine; see toolapi/toolapi.h.
#include <stdarg.h>

#include "engine/callstack/callstack.h"
#include "engine/log/log.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"

u32 tool_context(ToolThread *thread)
{
    if (!thread->callstack)
        return 0;
    return callstack_context(thread->callstack, thread->pc, thread->gpr[RSP]);
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
    thread_for_each(fn, arg);
}
