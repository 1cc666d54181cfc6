// SPDX-License-Identifier: MIT
//
// Wraps and replaces functions of wrapped.cpp; says each event. --twice wraps all of them again.
#include <muninn/tool.h>
#include <stdlib.h>
#include <string.h>

MUNINN_TOOL("wraps", "wraps and replaces functions")

static MuninnAddress called; // a function of the client's

static void before(MuninnThread *thread, MuninnCall *call, void *data)
{
    muninn_log("before %s(%lu)", (const char *)data, call->args[0]);
    call->state = call->args[0] + 50;
    if (strcmp(data, "plain") == 0)
        call->args[0] += 10;
}

static void after(MuninnThread *thread, MuninnCall *call, void *data)
{
    muninn_log("after %s = %lu, state %lu", (const char *)data, call->result, call->state);
    if (strcmp(data, "plain") == 0)
        call->result += 1000;
}

static void left(MuninnThread *thread, MuninnCall *call, void *data)
{
    muninn_log("left %s, state %lu", (const char *)data, call->state);
}

static uint64_t replace(MuninnThread *thread, MuninnCall *call, void *data)
{
    uint64_t result = 0, argument = call->args[0];
    if (called && muninn_call_client(thread, called, &argument, 1, &result))
        muninn_log("called(%lu) = %lu", argument, result);
    return 7;
}

static uint64_t decline(MuninnThread *thread, MuninnCall *call, void *data)
{
    muninn_log("declined(%lu)", call->args[0]);
    call->args[0] = 6;
    call->run_original = true;
    return 0;
}

static void on_allocation(MuninnThread *thread, const MuninnAllocation *event, void *data)
{
    if (event->kind == MUNINN_ALLOCATED && event->size == 77)
        muninn_log("allocated %lu", event->size);
}

static void before_malloc(MuninnThread *thread, MuninnCall *call, void *data)
{
    if (call->args[0] == 77)
        muninn_log("before malloc(%lu)", call->args[0]);
}

static void wrap_all(const char *const *names)
{
    for (; *names; names++) {
        MuninnWrap wrap = {before, after, left, (void *)*names};
        muninn_wrap(NULL, *names, &wrap);
    }
}

int muninn_tool_start(void)
{
    static const char *const names[] = {"plain", "jumps", "throws", "ends", "outer", "inner", NULL};
    static const char *const again[] = {"plain", "throws", "declined", "replaced", NULL};
    bool twice = false;
    MuninnWrap of_malloc = {.before = before_malloc};
    muninn_option_bool("twice", &twice, "Several for one function.");
    muninn_option_number("called", &called, "What the replacement calls.");
    wrap_all(names);
    muninn_replace(NULL, "replaced", replace, NULL);
    muninn_replace(NULL, "declined", decline, NULL);
    if (twice) {
        wrap_all(again);
        muninn_wrap("libc.so*", "malloc", &of_malloc);
    }
    muninn_on_allocation(on_allocation, NULL);
    return 0;
}
