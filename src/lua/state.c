// SPDX-License-Identifier: MIT
//
// Lua states: what a script may use in them, how far it may go, and what becomes of its errors.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lualib.h>

#include "lua/script.h"

State *home;
pthread_mutex_t home_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t states_lock = PTHREAD_MUTEX_INITIALIZER;
static State *states; // all but home

enum { HOOK_INTERVAL = 1000, ERRORS_MAX = 10 };

// ---------------------------------------------------------------------------- bounds

static void *allocate(void *arg, void *old, size_t old_size, size_t size)
{
    State *state = arg;
    if (!old)
        old_size = 0; // Lua tells the type there
    if (size == 0) {
        free(old);
        state->bytes -= old_size;
        return NULL;
    }
    // Outside of a protected call nobody could catch that there is no memory.
    if (state->is_running && size > old_size &&
        state->bytes + (size - old_size) > script_options.max_memory)
        return NULL;
    void *memory = realloc(old, size);
    if (memory)
        state->bytes += size - old_size;
    return memory;
}

// Lua calls this every HOOK_INTERVAL instructions.
static void on_instructions(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    State *state = state_of(L);
    state->spent += HOOK_INTERVAL;
    if (state->spent <= script_options.max_instructions)
        return;
    state->is_stopped = true;
    luaL_where(L, 0);
    lua_pushfstring(L, "stopped after %I instructions (--lua-max-instructions)",
                    (lua_Integer)script_options.max_instructions);
    lua_concat(L, 2);
    lua_error(L);
}

// pcall() catches errors of the script, but not that the script has been stopped.
static int guarded_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (state_of(L)->is_stopped)
        return lua_error(L);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

// No instructions are counted in a finaliser, so a script has none.
static int guarded_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnoneornil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "a metatable with __gc cannot be used here");
        lua_pop(L, 1);
    }
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

// ---------------------------------------------------------------------------- what is there

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        {LUA_GNAME, luaopen_base}, {LUA_STRLIBNAME, luaopen_string},
        {LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math},
        {LUA_UTF8LIBNAME, luaopen_utf8},
    };
    static const char *const removed[] = {"dofile", "loadfile", "load", "collectgarbage", "xpcall",
                                          "warn"};
    for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++) {
        lua_pushnil(L);
        lua_setglobal(L, removed[i]);
    }
    lua_getglobal(L, LUA_STRLIBNAME);
    lua_pushnil(L);
    lua_setfield(L, -2, "dump");
    lua_pop(L, 1);
    lua_register(L, "pcall", guarded_pcall);
    lua_register(L, "setmetatable", guarded_setmetatable);
}

static int open_all(lua_State *L)
{
    open_libraries(L);
    api_open_probes(L);
    api_open_values(L);
    api_open_tables(L);
    return 0;
}

static bool prepare(State *state)
{
    *(State **)lua_getextraspace(state->L) = state;
    lua_pushcfunction(state->L, open_all);
    lua_call(state->L, 0, 0);
    if (script_options.max_instructions)
        lua_sethook(state->L, on_instructions, LUA_MASKCOUNT, HOOK_INTERVAL);
    state->is_loading = state->is_running = true;
    bool is_loaded = scripts_load(state);
    state->is_loading = state->is_running = false;
    return is_loaded;
}

State *state_create(MuninnThread *thread, bool is_home)
{
    State *state = calloc(1, sizeof(*state));
    if (state) {
        state->functions = calloc(PROBES_MAX, sizeof(*state->functions));
        state->thread = thread;
        tables_init(&state->tables, script_options.max_memory);
        state->L = lua_newstate(allocate, state);
    }
    if (!state || !state->functions || !state->L) {
        speak("there is no memory for a state of the script");
        return NULL;
    }
    if (is_home)
        home = state;
    if (!prepare(state)) {
        state_destroy(state);
        return NULL;
    }
    if (!is_home) {
        pthread_mutex_lock(&states_lock);
        state->next = states;
        states = state;
        pthread_mutex_unlock(&states_lock);
    }
    return state;
}

static void unlink_state(const State *state)
{
    for (State **at = &states; *at; at = &(*at)->next) {
        if (*at == state) {
            *at = state->next;
            return;
        }
    }
}

static void release(State *state)
{
    lua_close(state->L);
    while (state->free_frames) {
        Frame *frame = state->free_frames;
        state->free_frames = frame->next;
        free(frame);
    }
    tables_clear(&state->tables, NULL);
    for (size_t i = 0; i < state->tables.count; i++)
        free(state->tables.items[i].name);
    free(state->tables.items);
    free(state->functions);
    free(state);
}

void state_destroy(State *state)
{
    pthread_mutex_lock(&states_lock);
    unlink_state(state);
    pthread_mutex_unlock(&states_lock);
    release(state);
}

void states_gather(void)
{
    bool is_whole = true;
    pthread_mutex_lock(&states_lock);
    for (State *state = states; state; state = state->next)
        is_whole &= tables_move(&home->tables, &state->tables);
    pthread_mutex_unlock(&states_lock);
    is_whole &= insns_count_moves(&home->tables);
    if (!is_whole)
        speak("not all sums have room: raise --lua-max-memory");
}

// The child counts what it does itself, and has one of the threads.
void states_fork_child(MuninnThread *thread)
{
    tables_clear(&home->tables, NULL);
    for (State *state = states, *next; state; state = next) {
        next = state->next;
        tables_clear(&state->tables, NULL);
        if (!state->thread || state->thread == thread)
            continue;
        unlink_state(state);
        release(state);
    }
    insns_fork_child();
}

// ---------------------------------------------------------------------------- calls

bool state_begin(State *state, const Probe *probe, Role role, const Event *event)
{
    if (__atomic_load_n(&probe->is_off, __ATOMIC_RELAXED))
        return false;
    int function = state->functions[probe->index][role];
    if (!function)
        return false;
    state->event = *event;
    state->event.probe = probe;
    state->spent = 0;
    state->is_stopped = false;
    lua_rawgeti(state->L, LUA_REGISTRYINDEX, function);
    return true;
}

static uint64_t hash_of_text(const char *text)
{
    uint64_t hash = 1;
    while (*text)
        hash = hash * 31 + (uint8_t)*text++;
    return hash;
}

static void say_error(const State *state, Probe *probe, int status)
{
    const char *message = lua_tostring(state->L, -1);
    uint64_t hash = hash_of_text(message ? message : "");
    uint32_t errors = __atomic_add_fetch(&probe->errors, 1, __ATOMIC_RELAXED);
    bool is_fatal = state->is_stopped || status == LUA_ERRMEM || errors >= ERRORS_MAX;

    if (__atomic_load_n(&probe->is_off, __ATOMIC_RELAXED))
        return; // another thread has said so
    if (is_fatal)
        __atomic_store_n(&probe->is_off, true, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&probe->last_error, hash, __ATOMIC_RELAXED) == hash && !is_fatal)
        return;
    speak_format("%s%s%s%s%s", message ? message : "an error without a text",
                 status == LUA_ERRMEM ? " (--lua-max-memory)" : "",
                 is_fatal ? "; " : "", is_fatal ? probe->title : "",
                 !is_fatal            ? ""
                 : errors >= ERRORS_MAX ? " is off from here on, after 10 errors"
                                        : " is off from here on");
}

bool state_call(State *state, Probe *probe, int arguments, int results)
{
    if (!__atomic_load_n(&probe->was_reached, __ATOMIC_RELAXED))
        __atomic_store_n(&probe->was_reached, 1, __ATOMIC_RELAXED);
    state->is_running = true;
    int status = lua_pcall(state->L, arguments, results, 0);
    state->is_running = false;
    if (status == LUA_OK)
        return true;
    say_error(state, probe, status);
    lua_pop(state->L, 1);
    return false;
}

void state_end(State *state)
{
    state->event.kind = EVENT_NONE;
}

// ---------------------------------------------------------------------------- every()

static void run_every(Probe *probe, uint64_t now)
{
    if (now < probe->next_ns)
        return;
    probe->next_ns = now + probe->period_ns;
    states_gather();
    if (state_begin(home, probe, ROLE_BEFORE, &(Event){.kind = EVENT_OTHER}))
        state_call(home, probe, 0, 0);
    state_end(home);
}

void states_tick(void)
{
    static uint64_t next_ns; // atomic: before, nothing is due
    uint64_t now = now_ns(), next = UINT64_MAX;

    if (now < __atomic_load_n(&next_ns, __ATOMIC_RELAXED) ||
        pthread_mutex_trylock(&home_lock) != 0)
        return;
    for (uint32_t i = 0; i < probe_count; i++) {
        if (probes[i]->kind != PROBE_EVERY)
            continue;
        run_every(probes[i], now);
        if (probes[i]->next_ns < next)
            next = probes[i]->next_ns;
    }
    __atomic_store_n(&next_ns, next, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&home_lock);
}
