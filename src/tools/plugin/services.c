// SPDX-License-Identifier: MIT
//
// What a loaded tool may ask and say: threads, memory, places, lines, files.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "engine/relay/relay.h"
#include "engine/syscall/syscall.h"
#include "tools/plugin/plugin_internal.h"

// -------------------------------------------------------------------- threads

uint32_t muninn_thread_number(const MuninnThread *thread)
{
    return plugin_thread(thread_of(thread))->number;
}

int muninn_thread_id(const MuninnThread *thread)
{
    return thread_of(thread)->thread.tid;
}

void *muninn_thread_data(const MuninnThread *thread)
{
    return plugin_thread(thread_of(thread))->data;
}

void muninn_set_thread_data(MuninnThread *thread, void *data)
{
    plugin_thread(thread_of(thread))->data = data;
}

uint64_t *muninn_word_of(MuninnThread *thread, MuninnWord word)
{
    if (word >= MUNINN_WORDS_MAX)
        plugin_refuse("muninn_word_of: there is no word %u", word);
    return &thread_of(thread)->tool.slot[SLOT_WORDS + word];
}

MuninnWord muninn_word(void)
{
    static u32 count;
    plugin_needs_start("muninn_word");
    if (count == MUNINN_WORDS_MAX)
        plugin_refuse("muninn_word: there are no more than %d", MUNINN_WORDS_MAX);
    return count++;
}

typedef struct Each {
    MuninnThreadFn *fn;
    void *data;
} Each;

static void call_each(ToolThread *thread, void *arg)
{
    const Each *each = arg;
    if (plugin_thread(thread))
        each->fn(handle_of(thread), each->data);
}

void muninn_each_thread(MuninnThreadFn *fn, void *data)
{
    tool_for_each_thread(call_each, &(Each){fn, data});
}

// ------------------------------------------------------- registers and memory

uint64_t muninn_register(const MuninnThread *handle, unsigned reg)
{
    ToolThread *thread = thread_of(handle);
    if (reg == MUNINN_FLAGS)
        return thread->dispatch.in_cache ? *tool_call_flags(thread) : thread->flags;
    return reg < MUNINN_GENERAL_REGISTERS ? thread->gpr[reg] : 0;
}

void muninn_set_register(MuninnThread *handle, unsigned reg, uint64_t value)
{
    enum { STATUS_FLAGS = 0x8d5 };
    ToolThread *thread = thread_of(handle);
    u64 *flags = thread->dispatch.in_cache ? tool_call_flags(thread) : &thread->flags;
    if (reg == MUNINN_FLAGS)
        *flags = (*flags & ~(u64)STATUS_FLAGS) | (value & STATUS_FLAGS);
    else if (reg < MUNINN_GENERAL_REGISTERS)
        thread->gpr[reg] = value;
}

MuninnAddress muninn_pc(const MuninnThread *thread)
{
    return thread_of(thread)->pc;
}

bool muninn_read(MuninnAddress address, void *to, size_t size)
{
    return guest_read(address, to, size);
}

bool muninn_write(MuninnAddress address, const void *from, size_t size)
{
    return guest_write(address, from, size);
}

bool muninn_call_client(MuninnThread *thread, MuninnAddress function, const uint64_t *args,
                        unsigned count, uint64_t *result)
{
    const char *callback = plugin_callback;
    plugin_needs_outside(thread_of(thread), "muninn_call_client");
    u32 depth = gate_pause(thread_of(thread));
    plugin_callback = NULL;
    bool done = tool_call_client(thread_of(thread), function, args, count, result);
    plugin_callback = callback;
    gate_resume(thread_of(thread), depth);
    return done;
}

// --------------------------------------------------------------------- places

// Where a function begins, its return address is on the stack: asked for the context of that
// address, the caller is the innermost frame and not its own caller, too.
uint32_t muninn_context(MuninnThread *thread, MuninnAddress pc)
{
    u64 top;
    u32 context = tool_context(thread_of(thread), pc);
    u32 parent = context ? context_parent(context) : 0;
    bool is_entry = guest_read(thread_of(thread)->gpr[RSP], &top, sizeof(top)) && top == pc;
    return parent && is_entry && context_pc(parent) == pc ? parent : context;
}

size_t muninn_context_frames(uint32_t context, MuninnAddress *frames, size_t max)
{
    return tool_context_frames(context, frames, max);
}

bool muninn_module_at(MuninnAddress address, MuninnModule *module)
{
    bool takes = !plugin_holds_engine_lock();
    plugin_needs_outside(&thread_ctx, "muninn_module_at");
    if (takes)
        lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find(address);
    bool is_file = mapping && mapping->name && mapping->inode;
    if (is_file) {
        *module = (MuninnModule){
            .start = mapping->start,
            .end = mapping->end,
            .offset = mapping->offset,
            .path = mapping->name,
        };
    }
    if (takes)
        lock_release(&engine_lock);
    return is_file;
}

const char *muninn_name(MuninnThread *thread, MuninnAddress pc, char *text, size_t size)
{
    char name[WIRE_NAME_BYTES] = "";
    if (relay_is_on())
        relay_name(thread ? thread_of(thread) : &thread_ctx, pc, name);
    if (name[0])
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, "0x%lX", pc);
    return text;
}

const char *muninn_syscall_name(uint64_t number, char *text, size_t size)
{
    return syscall_name(number, text, size);
}

// ------------------------------------------------------------------- speaking

void muninn_log_list(const char *format, va_list arguments)
{
    char line[4096];
    int n = snprintf(line, sizeof(line), "%s: ", plugin_description->name);
    if (n >= 0 && (size_t)n < sizeof(line))
        vsnprintf(line + n, sizeof(line) - (size_t)n, format, arguments);
    log_line("%s", line);
}

void muninn_log(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    muninn_log_list(format, arguments);
    va_end(arguments);
}

void muninn_answer(MuninnThread *thread, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    relay_answer(thread_of(thread), text);
}

int muninn_open(const char *path_template)
{
    char path[PATH_MAX];
    int error = options_expand_path(path_template, getpid(), 0, path, sizeof(path));
    if (error)
        return error;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int hidden = descriptor_hide(fd, NULL);
    close(fd);
    return hidden;
}
