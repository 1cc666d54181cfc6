// SPDX-License-Identifier: MIT
//
// The Lua functions that tell of the event, of the client's memory and of the process.
#include <string.h>
#include <unistd.h>

#include "lua/script.h"

// ---------------------------------------------------------------------------- memory

enum { STR_DEFAULT = 200, READ_MAX = 1 << 20, PAGE_BYTES = 4096 };

// str(address [, longest]): nil where nothing can be read.
static int api_str(lua_State *L)
{
    char chunk[256];
    uint64_t address = (uint64_t)luaL_checkinteger(L, 1);
    uint64_t longest = (uint64_t)luaL_optinteger(L, 2, STR_DEFAULT), done = 0;
    luaL_Buffer text;

    luaL_argcheck(L, longest <= READ_MAX, 2, "at most a mebibyte");
    luaL_buffinit(L, &text);
    while (done < longest) {
        // The text may end at the end of what is mapped: no read crosses a page.
        uint64_t size = PAGE_BYTES - (address + done) % PAGE_BYTES;
        size = size < sizeof(chunk) ? size : sizeof(chunk);
        size = size < longest - done ? size : longest - done;
        if (!muninn_read(address + done, chunk, size))
            break;
        size_t length = strnlen(chunk, size);
        luaL_addlstring(&text, chunk, length);
        done += length;
        if (length < size) {
            luaL_pushresult(&text);
            return 1;
        }
    }
    luaL_pushresult(&text);
    if (!done && longest)
        lua_pushnil(L);
    return 1;
}

// read(address, size): nil where not all of it can be read.
static int api_read(lua_State *L)
{
    uint64_t address = (uint64_t)luaL_checkinteger(L, 1);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_Buffer bytes;

    luaL_argcheck(L, size >= 0 && size <= READ_MAX, 2, "at most a mebibyte");
    char *to = luaL_buffinitsize(L, &bytes, (size_t)size);
    if (!muninn_read(address, to, (size_t)size)) {
        lua_pushnil(L);
        return 1;
    }
    luaL_pushresultsize(&bytes, (size_t)size);
    return 1;
}

static int read_integer(lua_State *L, size_t size, bool has_sign)
{
    uint64_t number = 0;
    if (!muninn_read((uint64_t)luaL_checkinteger(L, 1), &number, size)) {
        lua_pushnil(L);
        return 1;
    }
    unsigned unused = 64 - 8 * (unsigned)size;
    lua_pushinteger(L, has_sign ? (int64_t)(number << unused) >> unused : (int64_t)number);
    return 1;
}

static int api_u8(lua_State *L)
{
    return read_integer(L, 1, false);
}

static int api_u16(lua_State *L)
{
    return read_integer(L, 2, false);
}

static int api_u32(lua_State *L)
{
    return read_integer(L, 4, false);
}

static int api_i32(lua_State *L)
{
    return read_integer(L, 4, true);
}

static int api_u64(lua_State *L)
{
    return read_integer(L, 8, false);
}

// write(address, bytes): false where it cannot be written.
static int api_write(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    lua_pushboolean(L, muninn_write((uint64_t)luaL_checkinteger(L, 1), bytes, size));
    return 1;
}

// ---------------------------------------------------------------------------- the event

static bool is_call(const Event *event)
{
    return event->kind == EVENT_CALL || event->kind == EVENT_RETURN || event->kind == EVENT_LEFT;
}

// elapsed(): nanoseconds since the call.
static int api_elapsed(lua_State *L)
{
    const Event *event = &state_of(L)->event;
    if (!event->start)
        return luaL_error(L, "elapsed() is for functions that run after a call");
    lua_pushinteger(L, (lua_Integer)clock_since_ns(event->start));
    return 1;
}

// saved(): what `before` has returned.
static int api_saved(lua_State *L)
{
    const Event *event = &state_of(L)->event;
    if (event->kind != EVENT_RETURN && event->kind != EVENT_LEFT)
        return luaL_error(L, "saved() is for functions that run after a wrapped call");
    if (event->saved)
        lua_rawgeti(L, LUA_REGISTRYINDEX, event->saved);
    else
        lua_pushnil(L);
    return 1;
}

// probe(): what the event is of.
static int api_probe(lua_State *L)
{
    const Event *event = &state_of(L)->event;
    if (is_call(event))
        place_push(L, PLACE_FUNCTION, event->call->function);
    else
        lua_pushstring(L, event->word);
    return 1;
}

// caller(): where the call comes from.
static int api_caller(lua_State *L)
{
    const Event *event = &state_of(L)->event;
    if (is_call(event))
        place_push(L, PLACE_LINE, event->call->return_address - 1);
    else if (event->kind == EVENT_ALLOCATION)
        place_push(L, PLACE_LINE, event->pc - 1);
    else if (event->kind == EVENT_INSN)
        place_push(L, PLACE_LINE, event->pc);
    else if (event->syscall)
        place_push(L, PLACE_LINE, muninn_pc(state_of(L)->thread) - 1);
    else
        return luaL_error(L, "caller() is for calls, allocations and instructions");
    return 1;
}

// stack([frames])
static int api_stack(lua_State *L)
{
    const State *state = state_of(L);
    const Event *event = &state->event;
    lua_Integer frames = luaL_optinteger(L, 1, 0);
    uint64_t pc = event->kind == EVENT_ALLOCATION ? event->pc - 1 : event->pc;

    luaL_argcheck(L, frames >= 0 && frames <= STACK_FRAMES_MAX, 1, "0 to 48");
    if (!state->thread || event->kind == EVENT_NONE)
        return luaL_error(L, "stack() is for events of a thread");
    if (is_call(event))
        pc = event->kind == EVENT_CALL ? event->call->function : event->call->return_address - 1;
    else if (event->syscall)
        pc = muninn_pc(state->thread) - 1;
    place_push(L, PLACE_STACK, muninn_context(state->thread, pc) | (uint64_t)frames << 32);
    return 1;
}

static int check_argument(lua_State *L)
{
    lua_Integer index = luaL_checkinteger(L, 1);
    luaL_argcheck(L, index >= 1 && index <= 6, 1, "1 to 6");
    return (int)index - 1;
}

// set_arg(index, value)
static int api_set_arg(lua_State *L)
{
    Event *event = &state_of(L)->event;
    int index = check_argument(L);
    if (event->kind != EVENT_CALL)
        return luaL_error(L, "set_arg() is for functions that run before a wrapped call");
    event->call->args[index] = (uint64_t)luaL_checkinteger(L, 2);
    return 0;
}

// set_result(value)
static int api_set_result(lua_State *L)
{
    Event *event = &state_of(L)->event;
    if (event->kind != EVENT_RETURN)
        return luaL_error(L, "set_result() is for functions that run after a wrapped call");
    event->call->result = (uint64_t)luaL_checkinteger(L, 1);
    return 0;
}

// number(): of the system call.
static int api_number(lua_State *L)
{
    const Event *event = &state_of(L)->event;
    if (!event->syscall)
        return luaL_error(L, "number() is for system calls");
    lua_pushinteger(L, (lua_Integer)event->syscall->number);
    return 1;
}

// reg("rax")
static int api_reg(lua_State *L)
{
    static const char *const names[] = {
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
        "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "flags", NULL,
    };
    const State *state = state_of(L);
    unsigned number = (unsigned)luaL_checkoption(L, 1, NULL, names);
    if (!state->thread || state->event.kind == EVENT_NONE)
        return luaL_error(L, "reg() is for events of a thread");
    lua_pushinteger(L, (lua_Integer)muninn_register(state->thread, number));
    return 1;
}

// ---------------------------------------------------------------------------- places

static int api_name(lua_State *L)
{
    place_push(L, PLACE_LINE, (uint64_t)luaL_checkinteger(L, 1));
    return 1;
}

static int api_func(lua_State *L)
{
    place_push(L, PLACE_FUNCTION, (uint64_t)luaL_checkinteger(L, 1));
    return 1;
}

// Names can be had in every event but those that blocks call.
static int place_tostring(lua_State *L)
{
    const State *state = state_of(L);
    bool has_names = state->event.kind != EVENT_NONE && state->event.kind != EVENT_INSN;
    luaL_Buffer text;
    luaL_checktype(L, 1, LUA_TLIGHTUSERDATA);
    luaL_buffinit(L, &text);
    place_text(has_names, (uint64_t)lua_touserdata(L, 1), &text);
    luaL_pushresult(&text);
    return 1;
}

static int place_concat(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

static void open_places(lua_State *L)
{
    lua_pushlightuserdata(L, NULL);
    lua_newtable(L);
    lua_pushcfunction(L, place_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, place_concat);
    lua_setfield(L, -2, "__concat");
    lua_pushliteral(L, "a place");
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

// ---------------------------------------------------------------------------- the process

static int api_time(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)now_ns());
    return 1;
}

static int api_pid(lua_State *L)
{
    lua_pushinteger(L, getpid());
    return 1;
}

static int api_tid(lua_State *L)
{
    lua_pushinteger(L, gettid());
    return 1;
}

// errname(result): "ENOENT", or nil.
static int api_errname(lua_State *L)
{
    lua_Integer result = luaL_checkinteger(L, 1);
    lua_pushstring(L, result < 0 && result > -4096 ? strerrorname_np((int)-result) : NULL);
    return 1;
}

static void speak_text(const State *state, const char *text)
{
    if (!state->is_loading || state == home)
        speak(text);
}

static int api_print(lua_State *L)
{
    luaL_Buffer text;
    int count = lua_gettop(L);
    luaL_buffinit(L, &text);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addchar(&text, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    speak_text(state_of(L), lua_tostring(L, -1));
    return 0;
}

// printf(format, ...), by string.format
static int api_printf(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    speak_text(state_of(L), lua_tostring(L, -1));
    return 0;
}

// option(name, default): of the type of its default.
static int api_option(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    luaL_argcheck(L, !lua_isnone(L, 2), 2, "the default decides the type");
    if (!state_of(L)->is_loading)
        return luaL_error(L, "option() can be called while the script is loaded only");
    lua_settop(L, 2);
    const char *given = script_option(name, luaL_tolstring(L, 2, NULL));
    if (!given)
        lua_pushvalue(L, 2);
    else if (lua_isboolean(L, 2))
        lua_pushboolean(L, strcmp(given, "no") != 0);
    else if (!lua_isnumber(L, 2))
        lua_pushstring(L, given);
    else if (!lua_stringtonumber(L, given))
        return luaL_error(L, "--%s=%s is no number", name, given);
    return 1;
}

void api_open_values(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"str", api_str},       {"read", api_read},       {"write", api_write},
        {"u8", api_u8},         {"u16", api_u16},         {"u32", api_u32},
        {"i32", api_i32},       {"u64", api_u64},         {"elapsed", api_elapsed},
        {"saved", api_saved},   {"probe", api_probe},     {"caller", api_caller},
        {"stack", api_stack},   {"set_arg", api_set_arg}, {"set_result", api_set_result},
        {"number", api_number}, {"reg", api_reg},         {"name", api_name},
        {"func", api_func},     {"time", api_time},       {"pid", api_pid},
        {"tid", api_tid},       {"errname", api_errname}, {"print", api_print},
        {"option", api_option}, {NULL, NULL},
    };
    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, api_printf, 1);
    lua_setglobal(L, "printf");
    lua_pop(L, 2);
    open_places(L);
}
