// SPDX-License-Identifier: MIT
//
// Functions that a program brings along to run in place of others: wrappers, which may call the
// original, and replacements, which may not. Their names say what they are for (wrap_name.h).
//
// Each such name that is seen is a *specification*, and stays one until its object is unmapped; its
// record stays for the next time.
// Objects may come in any order: the symbols of a new object are compared with all specifications,
// and when a new object brings specifications, the objects that are there are compared with them.
// A function that two specifications fit belongs to the first; what the tool intercepts itself
// belongs to the tool.
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "base/wrap_name.h"
#include "engine/log/log.h"
#include "engine/redirect/redirect_internal.h"

typedef struct Spec {
    const char *soname, *function;
    GuestAddr target; // 0: its object is not there
    bool wraps;
    bool is_chosen;   // its soname fits the object being looked at
    bool is_told;     // a conflict of it was noted
} Spec;

static Vec specs; // these two: engine lock
static Arena texts;
static bool is_verbose, is_traced;

void wraps_init(void)
{
    vec_init(&specs, sizeof(Spec));
}

void wraps_set_words(bool verbose, bool trace)
{
    is_verbose = verbose;
    is_traced = trace;
}

static Spec *spec_at(size_t i)
{
    return vec_at(&specs, i);
}

static bool is_same(const Spec *spec, const WrapName *name)
{
    return spec->wraps == name->wraps && strcmp(spec->soname, name->soname) == 0 &&
           strcmp(spec->function, name->function) == 0;
}

// A copy that stays.
static const char *keep_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(&texts, size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

static Spec *new_spec(const WrapName *name)
{
    Spec spec = {.soname = keep_text(name->soname), .function = keep_text(name->function),
                 .wraps = name->wraps};
    return spec.soname && spec.function ? vec_push(&specs, &spec) : NULL;
}

bool wraps_note(const char *symbol, GuestAddr target)
{
    static char buffer[WRAP_NAME_MAX];
    Spec *free_spec = NULL;
    WrapName name;
    if (!wrap_name_decode(symbol, buffer, &name))
        return false;
    for (size_t i = 0; i < specs.count; i++) {
        Spec *s = spec_at(i);
        if (!is_same(s, &name))
            continue;
        if (s->target == target)
            return false; // both symbol tables have it
        if (!s->target)
            free_spec = s;
    }
    Spec *spec = free_spec ? free_spec : new_spec(&name);
    if (!spec)
        return false;
    spec->target = target;
    if (is_traced)
        log_note("redirection: %s:%s is to be %s by the function at 0x%lx", spec->soname,
                 spec->function, spec->wraps ? "wrapped" : "replaced", target);
    return true;
}

bool wraps_are_there(void)
{
    for (size_t i = 0; i < specs.count; i++) {
        if (spec_at(i)->target)
            return true;
    }
    return false;
}

bool wraps_choose(const char *soname)
{
    const char *object = soname[0] ? soname : "NONE";
    bool any = false;
    for (size_t i = 0; i < specs.count; i++) {
        Spec *s = spec_at(i);
        s->is_chosen = s->target && name_matches(s->soname, object);
        any |= s->is_chosen;
    }
    return any;
}

static void note_conflict(Spec *spec, const char *name, GuestAddr pc)
{
    if (spec->is_told || !(is_verbose || is_traced))
        return;
    spec->is_told = true;
    log_note("redirection: %s at 0x%lx is not %s by the function at 0x%lx: %s", name, pc,
             spec->wraps ? "wrapped" : "replaced", spec->target,
             hooks_is_tools(pc) ? "the tool has a function of its own for it"
                                : "another one came first");
}

// Wrappers and the functions they are for may have one name, and a pattern may fit itself.
static void apply(Spec *spec, const char *name, u64 size_bytes, bool is_resolver, GuestAddr pc)
{
    if (spec->target == pc)
        return;
    switch (hooks_add_jump(pc, size_bytes, spec->target, spec->wraps, is_resolver)) {
    case HOOK_ADDED:
        if (is_verbose || is_traced)
            log_note("redirection: %s at 0x%lx is %s by the function at 0x%lx", name, pc,
                     spec->wraps ? "wrapped" : "replaced", spec->target);
        break;
    case HOOK_TAKEN: note_conflict(spec, name, pc); break;
    case HOOK_THERE: break;
    }
}

void wraps_apply(const char *name, u64 size_bytes, bool is_resolver, GuestAddr pc)
{
    for (size_t i = 0; i < specs.count; i++) {
        Spec *s = spec_at(i);
        if (s->is_chosen && name_matches(s->function, name))
            apply(s, name, size_bytes, is_resolver, pc);
    }
}

bool wraps_forget(GuestAddr start, GuestAddr end)
{
    bool any = false;
    for (size_t i = 0; i < specs.count; i++) {
        Spec *s = spec_at(i);
        if (s->target < start || s->target >= end)
            continue;
        s->target = 0;
        any = true;
    }
    return any;
}
