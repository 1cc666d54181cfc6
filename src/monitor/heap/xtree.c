// SPDX-License-Identifier: MIT
//
// --xtree-memory of massif: the model's heap sites as a tree of calls in callgrind's format. What
// was freed is shown where it was allocated: nobody notes who frees.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/callgrind/callgrind.h"
#include "monitor/heap/model.h"
#include "monitor/report/report.h"

enum { STACK_FRAMES_MAX = 1024 };

static const CallgrindEvent events[] = {
    {"curB", "currently allocated Bytes"},   {"curBk", "currently allocated Blocks"},
    {"totB", "total allocated Bytes"},       {"totBk", "total allocated Blocks"},
    {"totFdB", "total Freed Bytes"},         {"totFdBk", "total Freed Blocks"},
};

static size_t frames_of(const HeapModel *model, const MassifStacks *stacks, u32 site, Frame *out)
{
    size_t count = 0;
    for (u32 context = stacks->context(stacks->arg, site); context && count < STACK_FRAMES_MAX;
         context = stacks->parent(stacks->arg, context)) {
        u32 named = 0;
        const RecordedFrame *frames = stacks->frames(stacks->arg, context, &named);
        if (named == 0)
            out[count++] = (Frame){.pc = stacks->pc(stacks->arg, context)};
        for (u32 i = 0; i < named && count < STACK_FRAMES_MAX; i++) {
            out[count++] = (Frame){
                .pc = frames[i].pc,
                .function = frames[i].function,
                .object = frames[i].object,
                .directory = frames[i].directory,
                .file = frames[i].file,
                .line = frames[i].line,
                .inlined = frames[i].inlined,
            };
        }
    }
    Options wanted = *model->options; // stacks of massif are bounded by --depth
    wanted.num_callers = model->options->depth + 1;
    return report_visible_frames(&wanted, out, count);
}

static bool add_site(HeapModel *model, CallTree *tree, const MassifStacks *stacks, u32 number)
{
    static Frame frames[STACK_FRAMES_MAX];
    const Site *site = &model->sites[number];
    u64 values[] = {site->live.bytes,
                    site->live.blocks,
                    site->allocated_bytes,
                    site->allocations,
                    site->allocated_bytes - site->live.bytes,
                    site->allocations - site->live.blocks};
    if (site->space != SPACE_HEAP || !site->allocations)
        return true;
    return calltree_add(tree, frames, frames_of(model, stacks, number, frames), values);
}

int xtree_write(HeapModel *model, const char *path)
{
    const Options *options = model->options;
    u32 event_count = options->xtree_memory == XTREE_MEMORY_FULL ? ARRAY_LEN(events) : 2;
    CallTree *tree = calltree_new(event_count);
    MassifStacks stacks = names_stacks(model);
    bool ok = tree != NULL;
    for (u32 i = 0; i < model->site_count && ok; i++)
        ok = add_site(model, tree, &stacks, i);
    char *command = files_command(model);
    CallgrindConfig config = {
        .creator = "muninn-" MUNINN_VERSION,
        .command = command ? command : "",
        .pid = model->config.pid,
        .events = events,
        .event_count = event_count,
        .compresses = options->xtree_compress_strings,
    };
    int error = ok ? calltree_write(tree, path, &config) : -ENOMEM;
    calltree_free(tree);
    free(command);
    return error;
}
