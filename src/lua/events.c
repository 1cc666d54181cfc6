// SPDX-License-Identifier: MIT
//
// From the engine's events to the functions of the script.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lua/script.h"

static Probe *syscall_probes[PROBES_MAX];
static uint32_t syscall_probe_count;
static bool has_every;

static State *state_in(MuninnThread *thread)
{
    return muninn_thread_data(thread);
}

static void push_arguments(lua_State *L, const uint64_t args[6])
{
    for (unsigned i = 0; i < 6; i++)
        lua_pushinteger(L, (lua_Integer)args[i]);
}

// The event is over; another one may be due.
static void end_event(State *state)
{
    state_end(state);
    if (has_every)
        states_tick();
}

// ---------------------------------------------------------------------------- functions

static Frame *new_frame(State *state, int saved)
{
    Frame *frame = state->free_frames;
    if (frame)
        state->free_frames = frame->next;
    else
        frame = malloc(sizeof(*frame));
    if (frame)
        *frame = (Frame){.saved = saved};
    return frame;
}

static void free_frame(State *state, Frame *frame)
{
    if (frame->saved)
        luaL_unref(state->L, LUA_REGISTRYINDEX, frame->saved);
    frame->next = state->free_frames;
    state->free_frames = frame;
}

static bool is_told_return(const Probe *probe)
{
    return probe->has[ROLE_AFTER] || probe->has[ROLE_LEFT];
}

static void on_call(MuninnThread *thread, MuninnCall *call, void *data)
{
    Probe *probe = data;
    State *state = state_in(thread);
    int saved = 0, results = is_told_return(probe);

    if (!state)
        return;
    if (state_begin(state, probe, ROLE_BEFORE, &(Event){.kind = EVENT_CALL, .call = call})) {
        push_arguments(state->L, call->args);
        if (state_call(state, probe, 6, results) && results) {
            if (lua_isnil(state->L, -1))
                lua_pop(state->L, 1);
            else
                saved = luaL_ref(state->L, LUA_REGISTRYINDEX);
        }
        end_event(state);
    }
    if (!results)
        return;
    __atomic_store_n(&probe->was_reached, 1, __ATOMIC_RELAXED);
    Frame *frame = new_frame(state, saved);
    if (frame)
        frame->start = clock_stamp();
    call->state = (uint64_t)frame;
}

static void tell_end(MuninnThread *thread, MuninnCall *call, Probe *probe, Role role)
{
    State *state = state_in(thread);
    Frame *frame = (Frame *)call->state;
    Event event = {.kind = role == ROLE_AFTER ? EVENT_RETURN : EVENT_LEFT, .call = call};

    if (!state || !frame)
        return;
    event.start = frame->start;
    event.saved = frame->saved;
    if (state_begin(state, probe, role, &event)) {
        if (role == ROLE_AFTER)
            lua_pushinteger(state->L, (lua_Integer)call->result);
        push_arguments(state->L, call->args);
        state_call(state, probe, role == ROLE_AFTER ? 7 : 6, 0);
        end_event(state);
    }
    free_frame(state, frame);
}

static void on_return(MuninnThread *thread, MuninnCall *call, void *data)
{
    tell_end(thread, call, data, ROLE_AFTER);
}

static void on_left(MuninnThread *thread, MuninnCall *call, void *data)
{
    tell_end(thread, call, data, ROLE_LEFT);
}

// A function that returns nothing, or has failed, lets the original run.
static uint64_t on_replace(MuninnThread *thread, MuninnCall *call, void *data)
{
    Probe *probe = data;
    State *state = state_in(thread);
    uint64_t result = 0;

    call->run_original = true;
    if (!state ||
        !state_begin(state, probe, ROLE_BEFORE, &(Event){.kind = EVENT_CALL, .call = call}))
        return 0;
    push_arguments(state->L, call->args);
    if (state_call(state, probe, 6, 1)) {
        call->run_original = lua_isnil(state->L, -1);
        result = lua_isboolean(state->L, -1) ? (uint64_t)lua_toboolean(state->L, -1)
                                             : (uint64_t)lua_tointeger(state->L, -1);
        lua_pop(state->L, 1);
    }
    end_event(state);
    return result;
}

// ---------------------------------------------------------------------------- system calls

static bool is_meant(const Probe *probe, uint64_t number)
{
    return number < CALLS_MAX && (probe->calls[number / 64] >> number % 64 & 1);
}

static void on_syscall(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    State *state = state_in(thread);
    Event event = {.kind = EVENT_SYSCALL, .syscall = call, .word = syscall_name(call->number)};

    (void)data;
    if (!state)
        return;
    for (uint32_t i = 0; i < syscall_probe_count; i++) {
        Probe *probe = syscall_probes[i];
        if (!is_meant(probe, call->number) || !state_begin(state, probe, ROLE_BEFORE, &event))
            continue;
        push_arguments(state->L, call->args);
        state_call(state, probe, 6, 0);
        end_event(state);
    }
    state->syscall_start = clock_stamp();
}

static void tell_mappings(State *state);

static void on_syscall_return(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    State *state = state_in(thread);
    Event event = {
        .kind = EVENT_SYSCALL_RETURN, .syscall = call, .word = syscall_name(call->number),
    };

    (void)data;
    if (!state)
        return;
    event.start = state->syscall_start;
    tell_mappings(state);
    for (uint32_t i = 0; i < syscall_probe_count; i++) {
        Probe *probe = syscall_probes[i];
        if (!is_meant(probe, call->number) || !state_begin(state, probe, ROLE_AFTER, &event))
            continue;
        lua_pushinteger(state->L, call->result);
        push_arguments(state->L, call->args);
        state_call(state, probe, 7, 0);
        end_event(state);
    }
}

// ---------------------------------------------------------------------------- mappings

// Code that has been mapped. What file it is of is known when the system call is over: the thread
// that made it tells the script then.
static struct {
    pthread_mutex_t lock;
    size_t count;
    MuninnAddress starts[256];
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_map(MuninnAddress start, MuninnAddress end, int prot, void *data)
{
    (void)end;
    (void)data;
    if (!(prot & PROT_EXEC))
        return;
    pthread_mutex_lock(&mappings.lock);
    if (mappings.count < sizeof(mappings.starts) / sizeof(mappings.starts[0]))
        mappings.starts[mappings.count++] = start;
    pthread_mutex_unlock(&mappings.lock);
}

static bool take_mapping(MuninnAddress *ret_start)
{
    pthread_mutex_lock(&mappings.lock);
    bool is_there = mappings.count != 0;
    if (is_there) {
        *ret_start = mappings.starts[0];
        mappings.count--;
        memmove(mappings.starts, mappings.starts + 1, mappings.count * sizeof(mappings.starts[0]));
    }
    pthread_mutex_unlock(&mappings.lock);
    return is_there;
}

static void tell_module(State *state, const MuninnModule *module)
{
    Event event = {.kind = EVENT_OTHER, .word = module->path};
    for (uint32_t i = 0; i < probe_count; i++) {
        if (probes[i]->kind != PROBE_MODULE || !state_begin(state, probes[i], ROLE_BEFORE, &event))
            continue;
        lua_pushstring(state->L, module->path);
        lua_pushinteger(state->L, (lua_Integer)module->start);
        lua_pushinteger(state->L, (lua_Integer)module->end);
        state_call(state, probes[i], 3, 0);
        end_event(state);
    }
}

static void tell_mappings(State *state)
{
    MuninnAddress start;
    MuninnModule module;

    if (!__atomic_load_n(&mappings.count, __ATOMIC_RELAXED))
        return;
    while (take_mapping(&start)) {
        if (muninn_module_at(start, &module))
            tell_module(state, &module);
    }
}

// ---------------------------------------------------------------------------- other events

static void on_allocation(MuninnThread *thread, const MuninnAllocation *allocation, void *data)
{
    static const char *const kinds[] = {
        [MUNINN_ALLOCATED] = "alloc", [MUNINN_FREED] = "free", [MUNINN_RESIZED] = "resize",
    };
    State *state = state_in(thread);
    Event event = {
        .kind = EVENT_ALLOCATION, .pc = allocation->pc, .word = kinds[allocation->kind],
    };

    (void)data;
    for (uint32_t i = 0; state && i < probe_count; i++) {
        if (probes[i]->kind != PROBE_ALLOC || !state_begin(state, probes[i], ROLE_BEFORE, &event))
            continue;
        lua_pushstring(state->L, event.word);
        lua_pushinteger(state->L, (lua_Integer)allocation->address);
        lua_pushinteger(state->L, (lua_Integer)allocation->size);
        lua_pushinteger(state->L, (lua_Integer)allocation->old);
        state_call(state, probes[i], 4, 0);
        end_event(state);
    }
}

static void on_signal(MuninnThread *thread, int number, void *data)
{
    State *state = state_in(thread);
    char text[32];
    const char *name = sigabbrev_np(number);

    (void)data;
    if (name)
        snprintf(text, sizeof(text), "SIG%s", name);
    else
        snprintf(text, sizeof(text), "SIGRTMIN+%d", number - SIGRTMIN);
    Event event = {.kind = EVENT_OTHER, .word = text};
    for (uint32_t i = 0; state && i < probe_count; i++) {
        if (probes[i]->kind != PROBE_SIGNAL || !state_begin(state, probes[i], ROLE_BEFORE, &event))
            continue;
        lua_pushinteger(state->L, number);
        lua_pushstring(state->L, text);
        state_call(state, probes[i], 2, 0);
        end_event(state);
    }
}

static void tell_thread(State *state, ProbeKind kind)
{
    for (uint32_t i = 0; i < probe_count; i++) {
        if (probes[i]->kind != kind ||
            !state_begin(state, probes[i], ROLE_BEFORE, &(Event){.kind = EVENT_OTHER}))
            continue;
        lua_pushinteger(state->L, muninn_thread_id(state->thread));
        lua_pushinteger(state->L, muninn_thread_number(state->thread));
        state_call(state, probes[i], 2, 0);
        end_event(state);
    }
}

static void on_thread_start(MuninnThread *thread, void *data)
{
    State *state = state_create(thread, false);
    (void)data;
    muninn_set_thread_data(thread, state);
    if (!state)
        return;
    tell_thread(state, PROBE_THREAD_START);
    tell_mappings(state);
}

static void on_thread_end(MuninnThread *thread, void *data)
{
    State *state = state_in(thread);
    (void)data;
    if (!state)
        return;
    tell_thread(state, PROBE_THREAD_END);
    pthread_mutex_lock(&home_lock);
    if (!tables_move(&home->tables, &state->tables))
        speak("not all sums have room: raise --lua-max-memory");
    pthread_mutex_unlock(&home_lock);
    muninn_set_thread_data(thread, NULL);
    state_destroy(state);
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    (void)data;
    states_fork_child(thread);
}

static void on_end(void *data)
{
    (void)data;
    report_end();
}

// ---------------------------------------------------------------------------- asking

static void ask_function(Probe *probe)
{
    bool has_end = is_told_return(probe);
    MuninnWrap wrap = {
        .before = probe->has[ROLE_BEFORE] || has_end ? on_call : NULL,
        .after = has_end ? on_return : NULL,
        .left = has_end ? on_left : NULL,
        .data = probe,
    };
    if (probe->kind == PROBE_WRAP)
        muninn_wrap(probe->object, probe->pattern, &wrap);
    else if (probe->kind == PROBE_REPLACE)
        muninn_replace(probe->object, probe->pattern, on_replace, probe);
    else if (probe->kind == PROBE_SYSCALL)
        syscall_probes[syscall_probe_count++] = probe;
}

void events_ask(void)
{
    for (uint32_t i = 0; i < probe_count; i++)
        ask_function(probes[i]);
    has_every = probes_have(PROBE_EVERY);
    muninn_on_thread_start(on_thread_start, NULL);
    muninn_on_thread_end(on_thread_end, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    if (syscall_probe_count)
        muninn_on_syscall_before(on_syscall, NULL);
    if (syscall_probe_count || probes_have(PROBE_MODULE))
        muninn_on_syscall_after(on_syscall_return, NULL);
    if (probes_have(PROBE_ALLOC))
        muninn_on_allocation(on_allocation, NULL);
    if (probes_have(PROBE_SIGNAL))
        muninn_on_signal(on_signal, NULL);
    if (probes_have(PROBE_MODULE))
        muninn_on_map(on_map, NULL);
    insns_ask();
}
