// SPDX-License-Identifier: MIT
//
// What an address is, when it is neither the heap's nor the thread's own.
#include "tools/memcheck/report/describe.h"

#include <string.h>
#include <sched.h>
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/report/report.h"

static __thread char path[1024]; // of the mapping that is being described

// The frames of a thread that runs would change under our eyes.
static void look_at_thread(ThreadCtx *ctx, void *data)
{
    Elsewhere *elsewhere = data;
    if (elsewhere->count || ctx == &thread_ctx || !ctx->tool.thread)
        return;
    elsewhere->count = describe_stack(ctx, elsewhere->address, elsewhere->parts);
    bool stands = __atomic_load_n(&ctx->thread.in_kernel, __ATOMIC_SEQ_CST) ||
                  __atomic_load_n(&ctx->thread.is_stopped, __ATOMIC_SEQ_CST);
    if (elsewhere->count > 1 && !stands)
        elsewhere->count = 1;
}

static bool is_object(const Mapping *mapping)
{
    if (!mapping->inode)
        return false;
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m)) {
        if (m->inode == mapping->inode && m->dev == mapping->dev && m->prot & PROT_EXEC)
            return true;
    }
    return false;
}

// The zeroed part of an object's data lies behind the mapped part.
static const Mapping *mapping_before(const Mapping *mapping)
{
    return mapping->start ? aspace_find(mapping->start - 1) : NULL;
}

MappedPlace describe_place(const Mapping *mapping, const char **ret_path)
{
    const Mapping *before;
    *ret_path = mapping->name;
    if (is_object(mapping))
        return mapping->prot & PROT_EXEC ? MAPPED_TEXT : MAPPED_DATA;
    if (mapping->inode)
        return MAPPED_FILE;
    if (mapping->prot & PROT_WRITE && !mapping->name && (before = mapping_before(mapping)) &&
        before->prot & PROT_WRITE && is_object(before)) {
        *ret_path = before->name;
        return MAPPED_BSS;
    }
    return MAPPED_ANONYMOUS;
}

static void describe_mapping(Elsewhere *elsewhere, const Mapping *mapping)
{
    const char *name;
    RelayPart *part = &elsewhere->parts[0];
    MappedPlace place = describe_place(mapping, &name);
    elsewhere->count = 1;
    if (mapping->name && strcmp(mapping->name, "[heap]") == 0) {
        *part = (RelayPart){
            .kind = PART_ADDRESS_BRK,
            .brk = {elsewhere->address, .first = mapping->start, .last = mapping->end - 1},
        };
        return;
    }
    path[0] = 0;
    if (name)
        strncat(path, name, sizeof(path) - 1);
    *part = (RelayPart){
        .kind = PART_ADDRESS_MAPPED,
        .mapping = {elsewhere->address, .protection = mapping->prot, .place = place, .path = path},
    };
}

void describe_elsewhere(ToolThread *thread, void *data)
{
    enum { TRIES = 1000 };
    Elsewhere *elsewhere = data;
    (void)thread;
    tool_for_each_thread(look_at_thread, elsewhere);
    if (elsewhere->count)
        return;
    // The lock's holder may be waiting for this thread: then it is not described.
    for (unsigned i = 0; i < TRIES; i++) {
        if (!lock_try(&engine_lock)) {
            sched_yield();
            continue;
        }
        const Mapping *mapping = aspace_find(elsewhere->address);
        if (mapping)
            describe_mapping(elsewhere, mapping);
        lock_release(&engine_lock);
        return;
    }
}
