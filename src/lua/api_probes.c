// SPDX-License-Identifier: MIT
//
// The Lua functions that ask for events: wrap(), syscall(), insn() and so on. They are called while
// a script is loaded, in home first. There a call makes a probe; in other states it finds the probe
// that has the same number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/script.h"

Probe *probes[PROBES_MAX];
uint32_t probe_count;

const char *const probe_kind_names[PROBE_KINDS] = {
    [PROBE_WRAP] = "wrap",
    [PROBE_REPLACE] = "replace",
    [PROBE_SYSCALL] = "syscall",
    [PROBE_ALLOC] = "alloc",
    [PROBE_THREAD_START] = "thread_start",
    [PROBE_THREAD_END] = "thread_end",
    [PROBE_SIGNAL] = "signal",
    [PROBE_MODULE] = "module",
    [PROBE_INSN] = "insn",
    [PROBE_BRANCH] = "branch",
    [PROBE_ACCESS] = "access",
    [PROBE_COUNT_INSN] = "count_insn",
    [PROBE_EVERY] = "every",
    [PROBE_AT_END] = "at_end",
};

bool probes_have(ProbeKind kind)
{
    for (uint32_t i = 0; i < probe_count; i++) {
        if (probes[i]->kind == kind)
            return true;
    }
    return false;
}

// ---------------------------------------------------------------------------- declaring

static Probe *add_probe(lua_State *L, ProbeKind kind, const char *title)
{
    Probe *probe = calloc(1, sizeof(*probe));
    char *copy = strdup(title);
    if (!probe || !copy)
        luaL_error(L, "there is no memory for %s", title);
    *probe = (Probe){.kind = kind, .index = probe_count, .title = copy};
    probes[probe_count++] = probe;
    return probe;
}

// The probe that this call of a Lua function stands for. `pattern` may be NULL.
static Probe *declare(lua_State *L, ProbeKind kind, const char *pattern)
{
    State *state = state_of(L);
    char title[256];

    snprintf(title, sizeof(title), pattern ? "%s(\"%s\")" : "%s()", probe_kind_names[kind],
             pattern);
    if (!state->is_loading)
        luaL_error(L, "%s can be called while the script is loaded only, not in an event", title);
    if (state->loaded == PROBES_MAX)
        luaL_error(L, "a script has at most %d probes", PROBES_MAX);
    uint32_t index = state->loaded++;
    if (state == home && index == probe_count)
        return add_probe(L, kind, title);
    if (index >= probe_count || strcmp(probes[index]->title, title) != 0)
        luaL_error(L, "%s was not asked for when the script was loaded first: it must ask for the "
                      "same events in the same order in each thread", title);
    return probes[index];
}

// The function at `index` of the arguments is the probe's for this role; nil: it has none.
static void set_function(lua_State *L, Probe *probe, Role role, int index)
{
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TFUNCTION);
    lua_pushvalue(L, index);
    int reference = luaL_ref(L, LUA_REGISTRYINDEX);
    state_of(L)->functions[probe->index][role] = reference;
    probe->has[role] = true;
}

static void set_pattern(lua_State *L, Probe *probe, const char *text)
{
    const char *colon = strchr(text, ':');
    if (probe->pattern || state_of(L) != home)
        return;
    if (colon)
        probe->object = strndup(text, (size_t)(colon - text));
    probe->pattern = strdup(colon ? colon + 1 : text);
}

// The last argument of insn(), branch() and access(): { object = "lib*", reads = false }.
static void set_filter(lua_State *L, Probe *probe, int index)
{
    if (state_of(L) != home)
        return;
    probe->reads = probe->writes = true;
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TTABLE);
    if (lua_getfield(L, index, "object") == LUA_TSTRING)
        probe->object = strdup(lua_tostring(L, -1));
    if (lua_getfield(L, index, "reads") == LUA_TBOOLEAN)
        probe->reads = lua_toboolean(L, -1);
    if (lua_getfield(L, index, "writes") == LUA_TBOOLEAN)
        probe->writes = lua_toboolean(L, -1);
    lua_pop(L, 3);
}

// ---------------------------------------------------------------------------- functions

// wrap("[object:]function", before, after, left)
static int api_wrap(lua_State *L)
{
    const char *pattern = luaL_checkstring(L, 1);
    Probe *probe = declare(L, PROBE_WRAP, pattern);
    set_pattern(L, probe, pattern);
    set_function(L, probe, ROLE_BEFORE, 2);
    set_function(L, probe, ROLE_AFTER, 3);
    set_function(L, probe, ROLE_LEFT, 4);
    if (!probe->has[ROLE_BEFORE] && !probe->has[ROLE_AFTER] && !probe->has[ROLE_LEFT])
        return luaL_error(L, "%s has no function to call", probe->title);
    return 0;
}

// replace("[object:]function", f)
static int api_replace(lua_State *L)
{
    const char *pattern = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    Probe *probe = declare(L, PROBE_REPLACE, pattern);
    set_pattern(L, probe, pattern);
    set_function(L, probe, ROLE_BEFORE, 2);
    return 0;
}

static void choose_calls(lua_State *L, Probe *probe)
{
    bool is_any = false;
    for (uint64_t number = 0; number < CALLS_MAX; number++) {
        const char *name = syscall_name(number);
        bool is_meant = lua_isinteger(L, 1) ? (uint64_t)lua_tointeger(L, 1) == number
                                            : name && matches(lua_tostring(L, 1), name);
        if (is_meant)
            probe->calls[number / 64] |= (uint64_t)1 << number % 64;
        is_any |= is_meant;
    }
    if (!is_any)
        luaL_error(L, "%s: there is no such system call", probe->title);
}

// syscall("name", before, after)
static int api_syscall(lua_State *L)
{
    bool is_number = lua_isinteger(L, 1);
    const char *name = is_number ? lua_pushfstring(L, "%I", lua_tointeger(L, 1))
                                 : luaL_checkstring(L, 1);
    Probe *probe = declare(L, PROBE_SYSCALL, name);
    if (state_of(L) == home)
        choose_calls(L, probe);
    set_function(L, probe, ROLE_BEFORE, 2);
    set_function(L, probe, ROLE_AFTER, 3);
    if (!probe->has[ROLE_BEFORE] && !probe->has[ROLE_AFTER])
        return luaL_error(L, "%s has no function to call", probe->title);
    return 0;
}

// A function that has nothing to choose.
static int declare_plain(lua_State *L, ProbeKind kind)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    set_function(L, declare(L, kind, NULL), ROLE_BEFORE, 1);
    return 0;
}

static int api_alloc(lua_State *L)
{
    return declare_plain(L, PROBE_ALLOC);
}

static int api_thread_start(lua_State *L)
{
    return declare_plain(L, PROBE_THREAD_START);
}

static int api_thread_end(lua_State *L)
{
    return declare_plain(L, PROBE_THREAD_END);
}

static int api_signal(lua_State *L)
{
    return declare_plain(L, PROBE_SIGNAL);
}

static int api_module(lua_State *L)
{
    return declare_plain(L, PROBE_MODULE);
}

static int api_at_end(lua_State *L)
{
    return declare_plain(L, PROBE_AT_END);
}

// insn("mnemonic", f, filter)
static int api_insn(lua_State *L)
{
    const char *pattern = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    Probe *probe = declare(L, PROBE_INSN, pattern);
    if (state_of(L) == home)
        probe->pattern = strdup(pattern);
    set_filter(L, probe, 3);
    set_function(L, probe, ROLE_BEFORE, 2);
    return 0;
}

static int declare_filtered(lua_State *L, ProbeKind kind)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    Probe *probe = declare(L, kind, NULL);
    set_filter(L, probe, 2);
    set_function(L, probe, ROLE_BEFORE, 1);
    return 0;
}

static int api_branch(lua_State *L)
{
    return declare_filtered(L, PROBE_BRANCH);
}

static int api_access(lua_State *L)
{
    return declare_filtered(L, PROBE_ACCESS);
}

// count_insn("all" | "mnemonic" | "class" | "extension", filter)
static int api_count_insn(lua_State *L)
{
    static const char *const what[] = {"all", "mnemonic", "class", "extension", NULL};
    const char *name = what[luaL_checkoption(L, 1, "mnemonic", what)];
    Probe *probe = declare(L, PROBE_COUNT_INSN, name);
    if (state_of(L) == home)
        probe->pattern = strdup(name);
    set_filter(L, probe, 2);
    return 0;
}

// every(milliseconds, f)
static int api_every(lua_State *L)
{
    lua_Number period = luaL_checknumber(L, 1);
    luaL_argcheck(L, period >= 1, 1, "at least one millisecond");
    luaL_checktype(L, 2, LUA_TFUNCTION);
    Probe *probe = declare(L, PROBE_EVERY, NULL);
    set_function(L, probe, ROLE_BEFORE, 2);
    if (state_of(L) == home) {
        probe->period_ns = (uint64_t)(period * 1e6);
        probe->next_ns = now_ns() + probe->period_ns;
    }
    return 0;
}

void api_open_probes(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"wrap", api_wrap},           {"replace", api_replace},
        {"syscall", api_syscall},     {"alloc", api_alloc},
        {"signal", api_signal},       {"thread_start", api_thread_start},
        {"module", api_module},       {"thread_end", api_thread_end},
        {"insn", api_insn},           {"branch", api_branch},
        {"access", api_access},       {"count_insn", api_count_insn},
        {"every", api_every},         {"at_end", api_at_end},
        {NULL, NULL},
    };
    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
