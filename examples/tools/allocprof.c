// SPDX-License-Identifier: MIT
//
// allocprof: the places that allocate most. Shows allocation events, calling contexts and names.
#include <muninn/tool.h>
#include <stdlib.h>
MUNINN_TOOL("allocprof", "lists the calling contexts that allocate the most bytes")
enum { PLACES = 1 << 20, SHOWN = 10 };
static struct Place { uint64_t context, calls, bytes; } places[PLACES];
static void on_allocation(MuninnThread *thread, const MuninnAllocation *event, void *data)
{
    struct Place *place = &places[muninn_context(thread, event->pc) % PLACES];
    __atomic_fetch_add(&place->calls, event->kind != MUNINN_FREED, __ATOMIC_RELAXED);
    __atomic_fetch_add(&place->bytes, event->size, __ATOMIC_RELAXED);
}
static int most_first(const void *a, const void *b)
{
    const struct Place *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}
static void on_end(void *data)
{
    for (uint32_t i = 0; i < PLACES; i++)
        places[i].context = i;
    qsort(places, PLACES, sizeof(places[0]), most_first);
    for (int i = 0; i < SHOWN && places[i].calls; i++) {
        MuninnAddress frames[8];
        size_t n = muninn_context_frames((uint32_t)places[i].context, frames, 8);
        char name[256];
        muninn_log("%lu bytes in %lu calls", places[i].bytes, places[i].calls);
        for (size_t j = 0; j < n && j < 8; j++)
            muninn_log("    %s", muninn_name(NULL, frames[j] - 1, name, sizeof(name)));
    }
}
int muninn_tool_start(void)
{
    muninn_need(MUNINN_NEED_CONTEXTS | MUNINN_NEED_NAMES);
    muninn_on_allocation(on_allocation, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
