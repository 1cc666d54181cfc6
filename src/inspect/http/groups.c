// SPDX-License-Identifier: MIT
//
// Sites put together by what a person wants to see as one: a stack, the function, file or
// library that allocated, a thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "inspect/http/viewer.h"
#include "inspect/stack/stack.h"

const char *const group_names[GROUP_COUNT] = {
    [GROUP_CONTEXT] = "context", [GROUP_FUNCTION] = "function", [GROUP_FILE] = "file",
    [GROUP_LIBRARY] = "library", [GROUP_THREAD] = "thread",     [GROUP_NONE] = "none",
};

static void free_groups(void *object)
{
    Groups *groups = object;

    free(groups->of_site);
    free(groups->id);
    free(groups->contexts);
    free(groups->place);
    free(groups);
}

static u32 group_id(const Names *names, Group group, const RecordedSite *site, u32 owner)
{
    switch (group) {
    case GROUP_CONTEXT: return site->context;
    case GROUP_THREAD: return site->thread;
    case GROUP_NONE: return 0;
    default: break;
    }
    if (owner == (u32)PLACE_NONE)
        return owner;
    return group == GROUP_FUNCTION ? names->function_of[owner]
           : group == GROUP_FILE   ? names->file_of[owner]
                                   : names->object_of[owner];
}

static bool has_place(Group group)
{
    return group != GROUP_THREAD && group != GROUP_NONE;
}

static bool fill_groups(Groups *groups, const View *view, const Names *names)
{
    u32 site_count = recording_site_count(view->recording);
    Map index_of = {0}, seen = {0};
    bool good = true;
    u64 known;

    for (u32 i = 0; i < site_count && good; i++) {
        const RecordedSite *site = recording_site(view->recording, i);
        u32 owner = site->context < names->context_count ? names->owner_of[site->context]
                                                         : (u32)PLACE_NONE;
        u32 id = group_id(names, groups->group, site, owner);
        if (!map_get(&index_of, id, &known)) {
            known = groups->count++;
            good = good && map_put(&index_of, id, known);
            groups->id[known] = id;
            groups->place[known] = has_place(groups->group) ? owner : (u32)PLACE_NONE;
        }
        groups->of_site[i] = (u32)known;
        u64 pair = known << 32 | site->context, unused;
        if (!map_get(&seen, pair, &unused)) {
            map_put(&seen, pair, 1);
            groups->contexts[known]++;
        }
    }
    map_free(&index_of);
    map_free(&seen);
    return good;
}

const Groups *view_groups(Call *call, View *view, Group group)
{
    u32 sites = recording_site_count(view->recording);
    char key[32];

    snprintf(key, sizeof(key), "groups %d", group);
    const Groups *known = memo_get(&view->memo, key);
    if (known)
        return known;
    const Names *names = view_names(call, view);
    Groups *groups = names ? call_alloc(call, 1, sizeof(*groups)) : NULL;
    if (!groups)
        return NULL;
    groups->group = group;
    groups->of_site = call_alloc(call, sites, sizeof(u32));
    groups->id = call_alloc(call, sites, sizeof(u32));
    groups->contexts = call_alloc(call, sites, sizeof(u32));
    groups->place = call_alloc(call, sites, sizeof(u32));
    if (!groups->of_site || !groups->id || !groups->contexts || !groups->place ||
        !fill_groups(groups, view, names)) {
        free_groups(groups);
        return NULL;
    }
    return memo_put(&view->memo, key, groups, 4ull * sites * sizeof(u32), free_groups);
}

static const RecordedThread *find_thread(const Recording *recording, u32 thread)
{
    for (u32 i = 0; i < recording_thread_count(recording); i++) {
        if (recording_thread(recording, i)->number == thread)
            return recording_thread(recording, i);
    }
    return NULL;
}

void group_put_name(const View *view, const Names *names, const Groups *groups, u32 index,
                    char *text, size_t size)
{
    u32 id = groups->id[index], place = groups->place[index];
    bool is_known = id != (u32)PLACE_NONE && place != (u32)PLACE_NONE;

    if (groups->group == GROUP_THREAD) {
        const RecordedThread *thread = find_thread(view->recording, id);
        if (thread && thread->name)
            snprintf(text, size, "thread %u (%s)", id, thread->name);
        else
            snprintf(text, size, "thread %u", id);
    } else if (groups->group == GROUP_NONE) {
        snprintf(text, size, "all");
    } else if (groups->group == GROUP_FILE) {
        snprintf(text, size, "%s", is_known ? names->files[id].file : "(no source file)");
    } else if (groups->group == GROUP_LIBRARY) {
        const char *object = is_known ? names->objects[id].object : NULL;
        snprintf(text, size, "%s", object ? path_last(object) : "(no object)");
    } else if (groups->group == GROUP_FUNCTION && is_known && !names->functions[id].function) {
        snprintf(text, size, "???");
    } else {
        place_put_label(view->recording, place, groups->group == GROUP_CONTEXT, text, size);
    }
}

// Who called it: contexts of one allocating function are told apart by that.
static void put_callers(Json *out, const View *view, const Names *names, u32 context)
{
    enum { CALLERS_SHOWN = 3 };
    StackWalk walk = stack_walk(view->recording, context);
    u32 place, last = (u32)PLACE_NONE, shown = 0;
    bool is_outside = false;

    json_key_open(out, "via", '[');
    while (shown < CALLERS_SHOWN && (place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
        const Named *function = &names->functions[names->function_of[place]];
        if (is_outside && function->function && names->function_of[place] != last) {
            json_text(out, function->function);
            last = names->function_of[place];
            shown++;
        }
        is_outside |= place == names->owner_of[context];
    }
    json_close(out, ']');
}

void json_group(Json *out, const View *view, const Names *names, const Groups *groups, u32 index)
{
    char text[2048];
    u32 place = groups->place[index];

    group_put_name(view, names, groups, index, text, sizeof(text));
    json_key_text(out, "name", text);
    if (groups->group == GROUP_FUNCTION && groups->id[index] < names->function_count)
        json_function(out, view->recording, &names->functions[groups->id[index]]);
    else
        json_place(out, view->recording, place);
    json_key(out, "context");
    if (groups->group == GROUP_CONTEXT)
        json_u64(out, groups->id[index]);
    else
        json_null(out);
    if (groups->group == GROUP_CONTEXT)
        put_callers(out, view, names, groups->id[index]);
    json_key(out, "thread");
    if (groups->group == GROUP_THREAD)
        json_u64(out, groups->id[index]);
    else
        json_null(out);
    snprintf(text, sizeof(text), "%c%u", "cfslt-"[groups->group], groups->id[index]);
    json_key_text(out, "key", text);
    json_key_u64(out, "contexts", groups->contexts[index]);
}
