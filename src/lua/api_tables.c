// SPDX-License-Identifier: MIT
//
// The Lua functions that add to tables, and those that show them.
#include <math.h>
#include <string.h>

#include "lua/script.h"

// ---------------------------------------------------------------------------- adding

static int64_t whole_number(lua_State *L, int index)
{
    int is_integer;
    lua_Integer number = lua_tointegerx(L, index, &is_integer);
    if (is_integer)
        return number;
    lua_Number real = floor(luaL_checknumber(L, index));
    luaL_argcheck(L, lua_numbertointeger(real, &number), index, "a number of 64 bits");
    return number;
}

static int add(lua_State *L, TableKind kind, int last_key, int64_t value)
{
    State *state = state_of(L);
    uint8_t key[KEY_BYTES];
    const char *name = luaL_checkstring(L, 1);
    size_t length = key_pack(L, 2, last_key, key);

    switch (tables_add(&state->tables, name, kind, key, length, value)) {
    case TABLES_ADDED:
        return 0;
    case TABLES_OTHER_KIND:
        return luaL_error(L, "the table '%s' is of another kind than %s()", name,
                          table_kind_names[kind]);
    case TABLES_NO_MEMORY:
        break;
    }
    return luaL_error(L, "the table '%s' has no room for more keys (--lua-max-memory)", name);
}

// count(name, key...)
static int api_count(lua_State *L)
{
    return add(L, TABLE_COUNT, lua_gettop(L), 1);
}

// name(name, key..., value)
static int add_last(lua_State *L, TableKind kind)
{
    int last = lua_gettop(L);
    if (last < 2)
        return luaL_error(L, "%s(name, key..., value) needs a name and a value",
                          table_kind_names[kind]);
    return add(L, kind, last - 1, whole_number(L, last));
}

static int api_sum(lua_State *L)
{
    return add_last(L, TABLE_SUM);
}

static int api_min(lua_State *L)
{
    return add_last(L, TABLE_MIN);
}

static int api_max(lua_State *L)
{
    return add_last(L, TABLE_MAX);
}

static int api_avg(lua_State *L)
{
    return add_last(L, TABLE_AVG);
}

static int api_hist(lua_State *L)
{
    return add_last(L, TABLE_HIST);
}

// ---------------------------------------------------------------------------- showing

// The tables of all threads are together in home's only.
static State *home_of(lua_State *L, const char *function)
{
    State *state = state_of(L);
    if (state != home || state->is_loading)
        luaL_error(L, "%s() can be called in at_end() and every() only", function);
    return state;
}

// report([name [, rows]])
static int api_report(lua_State *L)
{
    State *state = home_of(L, "report");
    const char *name = luaL_optstring(L, 1, NULL);
    lua_Integer top = luaL_optinteger(L, 2, (lua_Integer)script_options.top);
    for (size_t i = 0; i < state->tables.count; i++) {
        const Table *table = &state->tables.items[i];
        if (!name || strcmp(table->name, name) == 0)
            report_table(state, table, top < 0 ? 0 : (uint64_t)top);
    }
    return 0;
}

// rows(name)
static int api_rows(lua_State *L)
{
    State *state = home_of(L, "rows");
    report_push_rows(state, tables_find(&state->tables, luaL_checkstring(L, 1)));
    return 1;
}

// get(name, key...)
static int api_get(lua_State *L)
{
    State *state = home_of(L, "get");
    uint8_t key[KEY_BYTES];
    const Table *table = tables_find(&state->tables, luaL_checkstring(L, 1));
    size_t length = key_pack(L, 2, lua_gettop(L), key);
    const Cell *cell = table ? table_cell(table, key, length) : NULL;
    if (cell)
        lua_pushinteger(L, cell_value(cell, table->kind));
    else
        lua_pushnil(L);
    return 1;
}

// clear([name])
static int api_clear(lua_State *L)
{
    State *state = home_of(L, "clear");
    tables_clear(&state->tables, luaL_optstring(L, 1, NULL));
    return 0;
}

void api_open_tables(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"count", api_count},   {"sum", api_sum},   {"min", api_min}, {"max", api_max},
        {"avg", api_avg},       {"hist", api_hist}, {"rows", api_rows}, {"get", api_get},
        {"report", api_report}, {"clear", api_clear}, {NULL, NULL},
    };
    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
