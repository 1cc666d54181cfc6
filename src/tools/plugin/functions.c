// SPDX-License-Identifier: MIT
//
// Functions of the client that a loaded tool wraps or replaces, and allocations, which are wraps of
// all functions that allocate.
#include <stdlib.h>
#include <string.h>

#include "tools/plugin/allocations.h"
#include "tools/plugin/plugin_internal.h"

ToolFunction *plugin_functions;
u32 plugin_function_count;

// What the tool wants to be told of a row; ToolFunction.data points to it.
typedef struct Wanted {
    MuninnWrap wrap;
    MuninnReplaceFn *replace;
} Wanted;

static ToolFunction *add_row(void)
{
    ToolFunction *rows = realloc(plugin_functions, (plugin_function_count + 1) * sizeof(*rows));
    if (!rows)
        plugin_refuse("no memory for its functions");
    plugin_functions = rows;
    rows[plugin_function_count] = (ToolFunction){0};
    return &rows[plugin_function_count++];
}

static const Wanted *wanted_of(const ToolCall *call)
{
    return (const Wanted *)call->function->data;
}

static MuninnCall told_of(const ToolCall *call)
{
    MuninnCall told = {
        .function = call->entry,
        .return_address = call->return_address,
        .result = call->result,
        .state = call->state,
    };
    memcpy(told.args, call->args, sizeof(told.args));
    return told;
}

static void enter(ToolThread *thread, const char *callback)
{
    gate_enter(thread);
    plugin_callback = callback;
}

static void leave(ToolThread *thread)
{
    plugin_callback = NULL;
    gate_leave(thread);
}

static void on_before(ToolThread *thread, ToolCall *call)
{
    const Wanted *wanted = wanted_of(call);
    MuninnCall told = told_of(call);
    enter(thread, "muninn_wrap");
    wanted->wrap.before(handle_of(thread), &told, wanted->wrap.data);
    leave(thread);
    memcpy(call->args, told.args, sizeof(told.args));
    call->state = told.state;
}

static void on_after(ToolThread *thread, ToolCall *call)
{
    const Wanted *wanted = wanted_of(call);
    MuninnCall told = told_of(call);
    enter(thread, "muninn_wrap");
    wanted->wrap.after(handle_of(thread), &told, wanted->wrap.data);
    leave(thread);
    call->result = told.result;
}

static void on_left(ToolThread *thread, ToolCall *call)
{
    const Wanted *wanted = wanted_of(call);
    MuninnCall told = told_of(call);
    enter(thread, "muninn_wrap");
    wanted->wrap.left(handle_of(thread), &told, wanted->wrap.data);
    leave(thread);
}

static u64 on_replace(ToolThread *thread, ToolCall *call)
{
    const Wanted *wanted = wanted_of(call);
    MuninnCall told = told_of(call);
    enter(thread, "muninn_replace");
    u64 result = wanted->replace(handle_of(thread), &told, wanted->wrap.data);
    leave(thread);
    memcpy(call->args, told.args, sizeof(told.args));
    call->run_original = told.run_original;
    return result;
}

static Wanted *add_wanted(const char *object, const char *name)
{
    Wanted *wanted = calloc(1, sizeof(*wanted));
    char *own_object = object ? strdup(object) : NULL, *own_name = strdup(name);
    if (!wanted || !own_name || (object && !own_object))
        plugin_refuse("no memory for its functions");
    ToolFunction *row = add_row();
    row->object = own_object;
    row->name = own_name;
    row->flags = TOOL_FUNCTION_LOCAL;
    row->data = (u64)wanted;
    return wanted;
}

void muninn_wrap(const char *object, const char *name, const MuninnWrap *wrap)
{
    plugin_needs_start("muninn_wrap");
    add_wanted(object, name)->wrap = *wrap;
    ToolFunction *row = &plugin_functions[plugin_function_count - 1];
    row->before = wrap->before ? on_before : NULL;
    row->after = wrap->after ? on_after : NULL;
    row->left = wrap->left ? on_left : NULL;
    if (!row->before && !row->after && !row->left)
        plugin_refuse("muninn_wrap: %s: there is nothing to call", name);
}

void muninn_replace(const char *object, const char *name, MuninnReplaceFn *fn, void *data)
{
    plugin_needs_start("muninn_replace");
    Wanted *wanted = add_wanted(object, name);
    wanted->replace = fn;
    wanted->wrap.data = data;
    plugin_functions[plugin_function_count - 1].replace = on_replace;
}

// ---------------------------------------------------------------- allocations

#define AT(n) n, NO_FACTOR
#define PRODUCT(n, m) n, m
#define ROW(object_, name_, flags_, kind, form, old, size, factor)                                 \
    {.object = object_, .name = name_, .flags = TOOL_FUNCTION_FAST | (flags_),                     \
     .before = (kind) == KIND_FREE ? allocation_frees : allocation_before,                         \
     .after = (kind) == KIND_FREE ? allocation_freed : allocation_after,                           \
     .left = allocation_left,                                                                      \
     .data = DATA(kind, form, old, size, factor)},
#define EXPANDED(...) ROW(__VA_ARGS__)
#define ALLOC(name, form, size) EXPANDED(NULL, name, 0, KIND_ALLOC, FORM_##form, 0, size)
#define RESIZE(name, form, old, size) EXPANDED(NULL, name, 0, KIND_RESIZE, FORM_##form, old, size)
#define FREE(name, argument) EXPANDED(NULL, name, 0, KIND_FREE, 0, argument, AT(0))
#define LOCAL_ALLOC(name, form, size) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, KIND_ALLOC, FORM_##form, 0, size)
#define LOCAL_RESIZE(name, form, old, size) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, KIND_RESIZE, FORM_##form, old, size)
#define LOCAL_FREE(name, argument) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, KIND_FREE, 0, argument, AT(0))

static const ToolFunction allocation_rows[] = {
#include "tools/heap/alloc_names.def"
};

void muninn_on_allocation(MuninnAllocationFn *fn, void *data)
{
    plugin_needs_start("muninn_on_allocation");
    if (allocation_fn)
        plugin_refuse("muninn_on_allocation: one function is all that there may be");
    allocation_fn = fn;
    allocation_data = data;
    // First: Tool.allocation_count rows.
    u32 others = plugin_function_count;
    for (u32 i = 0; i < ARRAY_LEN(allocation_rows); i++)
        add_row();
    memmove(plugin_functions + ARRAY_LEN(allocation_rows), plugin_functions,
            others * sizeof(*plugin_functions));
    memcpy(plugin_functions, allocation_rows, sizeof(allocation_rows));
    plugin_tool.allocation_count = ARRAY_LEN(allocation_rows);
}
