// SPDX-License-Identifier: MIT
//
// Who allocated: modules, distinct pcs, contexts, threads and sites, each with the number
// under which the recording knows it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pages.h"
#include "monitor/heap/model_event.h"

bool places_init(HeapModel *model)
{
    vec_init(&model->threads, sizeof(ModelThread));
    vec_init(&model->ranges, sizeof(Range));
    vec_init(&model->contexts, sizeof(Context));
    vec_init(&model->places, sizeof(Place));
    vec_init(&model->codes, sizeof(Code));
    vec_init(&model->modules, sizeof(Module));
    model->places_max = CONTEXTS_MAX;
    model->sites_max = SITES_MAX;
    if (!vec_push(&model->contexts, NULL) || // the empty stack
        !vec_push(&model->places, NULL) || !vec_push(&model->codes, NULL))
        return false;
    ModelThread *nobody = vec_push(&model->threads, NULL);
    if (nobody)
        nobody->stack_site = SITE_NONE;
    return nobody != NULL;
}

void places_free(HeapModel *model)
{
    for (u32 i = 0; i < model->site_count; i++) {
        free(model->sites[i].sizes.counts);
        free(model->sites[i].lifetimes.counts);
    }
    if (model->sites)
        pages_unmap(model->sites, model->site_capacity * sizeof(Site));
    vec_free(&model->threads);
    vec_free(&model->ranges);
    vec_free(&model->contexts);
    vec_free(&model->places);
    vec_free(&model->codes);
    vec_free(&model->modules);
    map_free(&model->site_of);
    map_free(&model->late);
    map_free(&model->code_of);
}

// ------------------------------------------------------------------- modules

void heap_code(HeapModel *model, const SymbolsMapping *mapping)
{
    if (!mapping->executable)
        return;
    size_t size = strlen(mapping->path ? mapping->path : "") + 1;
    char *path = arena_alloc(&model->arena, size, 1);
    u8 *build_id = mapping->build_id_size ? arena_alloc(&model->arena, mapping->build_id_size, 1)
                                          : NULL;
    if (!path)
        return;
    memcpy(path, mapping->path ? mapping->path : "", size);
    if (build_id)
        memcpy(build_id, mapping->build_id, mapping->build_id_size);
    Module module = {
        .recorded = {
            .path = path,
            .start = mapping->start,
            .size = mapping->size,
            .offset = mapping->file_offset,
            .build_id = build_id,
            .build_id_size = build_id ? (u32)mapping->build_id_size : 0,
        },
    };
    vec_push(&model->modules, &module);
}

// What was mapped last at an address is what is there: mappings are few, new pcs too.
static u32 module_of(HeapModel *model, u64 pc)
{
    for (size_t i = model->modules.count; i-- > 0;) {
        Module *module = vec_at(&model->modules, i);
        if (pc - module->recorded.start >= module->recorded.size)
            continue;
        if (module->number == 0 && model->writer)
            module->number = recording_add_module(model->writer, &module->recorded);
        return module->number;
    }
    return 0;
}

// ------------------------------------------------------------------ contexts

static u32 code_find(HeapModel *model, u64 pc, bool is_return)
{
    Code code = {
        .symbols = model->config.symbols,
        .place = symbols_place(model->config.symbols, pc - is_return),
        .pc = pc,
        .is_return = is_return,
    };
    code.place.offset += is_return;
    u64 key = (code.place.offset * 2 + is_return) * 0x9e3779b97f4a7c15ull + code.place.module;
    u64 known;
    for (; map_get(&model->code_of, key, &known); key++) {
        const Code *other = vec_at(&model->codes, known);
        if (other->symbols == code.symbols && other->place.module == code.place.module &&
            other->place.offset == code.place.offset && other->is_return == is_return)
            return (u32)known;
    }
    u32 number = (u32)model->codes.count;
    if (!vec_push(&model->codes, &code))
        return 0;
    map_put(&model->code_of, key, number);
    return number;
}

static Context *context_at(HeapModel *model, u32 id)
{
    while (model->contexts.count <= id) {
        if (!vec_push(&model->contexts, NULL))
            return NULL;
    }
    return vec_at(&model->contexts, id);
}

static void record_place(HeapModel *model, Place *place)
{
    const Code *code = vec_at(&model->codes, place->code);
    place->is_recorded = false; // its names: in a new file there are none yet
    if (model->writer)
        recording_add_context(model->writer, place->parent,
                              module_of(model, code->pc - code->is_return), code->pc,
                              code->is_return);
}

// Whether a twin's process means another stack by this id than its parent did. It tells all
// that it uses anew, callers first.
static bool is_other(HeapModel *model, Context *context, u32 outer, u64 pc)
{
    if (!context->is_inherited)
        return false;
    const Place *place = vec_at(&model->places, context->number);
    const Code *code = vec_at(&model->codes, place->code);
    context->is_inherited = false;
    return place->parent != outer || code->pc != (pc & ~WIRE_EXACT_PC);
}

void heap_context(HeapModel *model, u32 id, u32 parent, u64 pc)
{
    bool is_return = pc != 0 && !(pc & WIRE_EXACT_PC);
    u32 outer = parent < model->contexts.count
                    ? ((Context *)vec_at(&model->contexts, parent))->number
                    : 0;
    // An id is hostile too (W3): it may not make us take the memory of 2^32 contexts.
    if (id == 0 || id > 64u << 20)
        return;
    Context *context = context_at(model, id);
    if (!context || (context->number != 0 && !is_other(model, context, outer, pc)))
        return;
    *context = (Context){0};
    if (model->places.count >= model->places_max) {
        model->oddities.cut_contexts++;
        context->number = outer; // M4
        return;
    }
    u32 code = code_find(model, pc & ~WIRE_EXACT_PC, is_return);
    Place place = {.parent = outer, .code = code};
    context->code = code;
    context->number = (u32)model->places.count;
    vec_push(&model->places, &place);
    record_place(model, &place);
}

// --------------------------------------------------------------------- sites

static u32 site_add(HeapModel *model, u64 key, const RecordedSite *recorded)
{
    if (model->site_count == model->site_capacity) {
        u32 capacity = model->site_capacity ? model->site_capacity * 2 : 1024;
        Site *sites = model->sites
                          ? pages_resize(model->sites, model->site_capacity * sizeof(Site),
                                         capacity * sizeof(Site))
                          : pages_map(capacity * sizeof(Site));
        if (!sites)
            return 0; // M1 holds: it counts, though for another
        model->sites = sites;
        model->site_capacity = capacity;
    }
    u32 number = model->site_count++;
    model->sites[number] = (Site){
        .context = recorded->context,
        .thread = recorded->thread & SITE_THREAD_MASK,
        .pages = recorded->pages & 7,
        .space = recorded->space & 3,
    };
    map_put(&model->site_of, key, number);
    if (model->writer)
        recording_add_site(model->writer, recorded);
    return number;
}

static u64 site_key(const RecordedSite *site)
{
    return (u64)site->context << 32 | (u64)site->space << 30 | (u64)site->pages << 27 |
           (site->thread & SITE_THREAD_MASK);
}

// Beyond sites_max threads are told apart no more; beyond twice that stacks are not, either.
static u32 site_look_up(HeapModel *model, RecordedSite site)
{
    u64 known;

    if (!map_get(&model->site_of, site_key(&site), &known) &&
        model->site_count >= model->sites_max) {
        if (model->site_count >= 2 * model->sites_max)
            site.context = 0;
        site.thread = 0;
        model->oddities.joined_sites++;
    }
    if (map_get(&model->site_of, site_key(&site), &known))
        return (u32)known;
    return site_add(model, site_key(&site), &site);
}

static bool is_ignored(HeapModel *model, u32 number)
{
    Place *place = vec_at(&model->places, number);
    if (place->ignored == 0)
        place->ignored = names_is_ignored(model, number) ? 2 : 1;
    return place->ignored == 2;
}

// site->context is the wire's here.
static u32 find_site(HeapModel *model, RecordedSite site)
{
    u32 id = site.context;
    Context *context = id < model->contexts.count ? vec_at(&model->contexts, id) : NULL;
    site.context = context ? context->number : 0;
    u32 number = model->options->ignore_fn.count && model->counts[site.space] &&
                         is_ignored(model, site.context)
                     ? SITE_IGNORED
                     : site_look_up(model, site);
    if (context && site.context && site.space == SPACE_HEAP) {
        context->thread = site.thread + 1;
        context->site = number;
    }
    return number;
}

u32 site_find(HeapModel *model, Space space, u32 context, u32 thread)
{
    return find_site(model, (RecordedSite){.space = space, .context = context, .thread = thread});
}

u32 site_find_pages(HeapModel *model, PagesKind pages, u32 context, u32 thread)
{
    return find_site(model, (RecordedSite){SPACE_MAPPED, context, thread, pages});
}

// ------------------------------------------------------------------- threads

ModelThread *thread_make(HeapModel *model, u32 number)
{
    enum { THREADS_MAX = 4 << 20 };
    if (number >= THREADS_MAX)
        number = 0;
    while (model->threads.count <= number && vec_push(&model->threads, NULL))
        ((ModelThread *)vec_at(&model->threads, model->threads.count - 1))->stack_site = SITE_NONE;
    return vec_at(&model->threads, number < model->threads.count ? number : 0);
}

static void record_thread(HeapModel *model, u32 number, u64 end_ns)
{
    const ModelThread *thread = thread_at(model, number);
    if (!model->writer || thread->tid == 0)
        return;
    recording_set_thread(model->writer, &(RecordedThread){
        .number = number,
        .tid = thread->tid,
        .name = thread->name[0] ? thread->name : NULL,
        .start_ns = thread->start_ns,
        .end_ns = end_ns,
    });
}

void heap_thread_start(HeapModel *model, const HeapTime *time, u32 number, i32 tid)
{
    ModelThread *thread = thread_at(model, number);
    model_set_time(model, time);
    thread->tid = tid;
    thread->start_ns = time->ns;
    thread->is_live = true;
    record_thread(model, number, 0);
}

void heap_thread_end(HeapModel *model, const HeapTime *time, u32 number)
{
    ModelThread *thread = thread_at(model, number);
    if (thread->stack_bytes)
        heap_stack(model, time, number, 0, 0, 0);
    model_set_time(model, time);
    thread->is_live = false;
    record_thread(model, number, time->ns);
}

static void thread_name(HeapModel *model, u32 number, ModelThread *thread)
{
    char path[64], name[sizeof(thread->name)] = "";

    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", model->config.os_pid, thread->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    name[strcspn(name, "\n")] = '\0';
    if (strcmp(name, thread->name) == 0)
        return;
    memcpy(thread->name, name, sizeof(name));
    record_thread(model, number, 0);
}

void threads_name(HeapModel *model)
{
    enum { NAMED_MAX = 256 }; // at once
    u32 named = 0;

    for (u32 i = 1; i < model->threads.count && named < NAMED_MAX; i++) {
        ModelThread *thread = thread_at(model, i);
        if (!thread->is_live || thread->tid <= 0)
            continue;
        thread_name(model, i, thread);
        named++;
    }
}

void places_record_all(HeapModel *model)
{
    for (size_t i = 0; i < model->modules.count; i++)
        ((Module *)vec_at(&model->modules, i))->number = 0;
    for (size_t i = 1; i < model->places.count; i++)
        record_place(model, vec_at(&model->places, i));
    for (u32 i = 0; i < model->site_count; i++) {
        const Site *site = &model->sites[i];
        recording_add_site(model->writer,
                           &(RecordedSite){(Space)site->space, site->context, site->thread,
                                           (PagesKind)site->pages});
    }
    for (u32 i = 1; i < model->threads.count; i++) {
        if (thread_at(model, i)->is_live)
            record_thread(model, i, 0);
    }
}
