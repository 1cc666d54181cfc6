// SPDX-License-Identifier: MIT
//
// Keys of tables, and places: what gets its text only when it is printed.
//
// A key is a row of parts. Each is a byte that tells its type, then a number of 8 bytes (integer,
// float or place), or a length of 4 bytes and so many bytes of text.
#include <stdio.h>
#include <string.h>

#include "lua/script.h"

enum { PART_INTEGER = 'i', PART_FLOAT = 'f', PART_PLACE = 'p', PART_TEXT = 't', NAME_BYTES = 512 };

// ---------------------------------------------------------------------------- places

void place_push(lua_State *L, PlaceSort sort, uint64_t value)
{
    lua_pushlightuserdata(L, (void *)place_make(sort, value));
}

static uint64_t place_value(uint64_t place)
{
    return place & (((uint64_t)1 << PLACE_SHIFT) - 1);
}

static void add_address(bool has_names, uint64_t pc, bool is_function, luaL_Buffer *text)
{
    char name[NAME_BYTES];
    if (has_names)
        muninn_name(NULL, pc, name, sizeof(name));
    if (!has_names || strcmp(name, "???") == 0) // in no file
        snprintf(name, sizeof(name), "0x%lX", (unsigned long)pc);
    // "function(int) (file.cc:12)"
    char *behind = NULL;
    for (char *at = name; is_function && (at = strstr(at, " (")); at++)
        behind = at;
    luaL_addlstring(text, name, behind ? (size_t)(behind - name) : strlen(name));
}

static void add_stack(bool has_names, uint64_t value, luaL_Buffer *text)
{
    MuninnAddress frames[STACK_FRAMES_MAX];
    size_t wanted = value >> 32, count, shown = 0;

    count = muninn_context_frames((uint32_t)value, frames, STACK_FRAMES_MAX);
    if (count > STACK_FRAMES_MAX)
        count = STACK_FRAMES_MAX;
    for (size_t i = 0; i < count && (!wanted || shown < wanted); i++) {
        // Of a call that has not returned the first frame stands behind itself again.
        if (!frames[i] || (i == 1 && frames[1] == frames[0] + 1))
            continue;
        luaL_addstring(text, "\n    ");
        add_address(has_names, shown++ ? frames[i] - 1 : frames[i], false, text);
    }
    if (!shown)
        luaL_addstring(text, "\n    (no stack)");
}

void place_text(bool has_names, uint64_t place, luaL_Buffer *text)
{
    uint64_t value = place_value(place);
    switch ((PlaceSort)(place >> PLACE_SHIFT)) {
    case PLACE_STACK:    add_stack(has_names, value, text); break;
    case PLACE_FUNCTION: add_address(has_names, value, true, text); break;
    case PLACE_LINE:     add_address(has_names, value, false, text); break;
    }
}

// ---------------------------------------------------------------------------- keys

typedef struct Packer {
    lua_State *L;
    uint8_t *key;
    size_t length;
} Packer;

static void put(Packer *packer, const void *bytes, size_t size)
{
    if (packer->length + size > KEY_BYTES)
        luaL_error(packer->L, "a key has at most %d bytes", KEY_BYTES);
    memcpy(packer->key + packer->length, bytes, size);
    packer->length += size;
}

static void put_number(Packer *packer, uint8_t type, const void *number)
{
    put(packer, &type, 1);
    put(packer, number, 8);
}

static void put_text(Packer *packer, const char *text, size_t length)
{
    static const uint8_t type = PART_TEXT;
    uint32_t size = (uint32_t)length;
    put(packer, &type, 1);
    put(packer, &size, sizeof(size));
    put(packer, text, length);
}

static void put_part(Packer *packer, int index)
{
    lua_State *L = packer->L;
    size_t length;
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            int64_t number = lua_tointeger(L, index);
            put_number(packer, PART_INTEGER, &number);
        } else {
            double number = lua_tonumber(L, index);
            put_number(packer, PART_FLOAT, &number);
        }
        break;
    case LUA_TLIGHTUSERDATA: {
        uint64_t place = (uint64_t)lua_touserdata(L, index);
        put_number(packer, PART_PLACE, &place);
        break;
    }
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, index, &length);
        put_text(packer, text, length);
        break;
    }
    case LUA_TNIL:     put_text(packer, "nil", 3); break;
    case LUA_TBOOLEAN: put_text(packer, lua_toboolean(L, index) ? "true" : "false",
                                lua_toboolean(L, index) ? 4 : 5); break;
    default:
        luaL_error(L, "a key is a number, a text, a boolean or a place, not a %s",
                   luaL_typename(L, index));
    }
}

size_t key_pack(lua_State *L, int first, int last, uint8_t key[KEY_BYTES])
{
    Packer packer = {.L = L, .key = key};
    for (int i = first; i <= last; i++)
        put_part(&packer, i);
    return packer.length;
}

static const uint8_t *add_part(bool has_names, const uint8_t *at, luaL_Buffer *text)
{
    char number[64];
    uint64_t bits;
    uint32_t length;
    double real;

    if (*at == PART_TEXT) {
        memcpy(&length, at + 1, sizeof(length));
        luaL_addlstring(text, (const char *)at + 1 + sizeof(length), length);
        return at + 1 + sizeof(length) + length;
    }
    memcpy(&bits, at + 1, sizeof(bits));
    memcpy(&real, at + 1, sizeof(real));
    if (*at == PART_PLACE) {
        place_text(has_names, bits, text);
        return at + 9;
    }
    if (*at == PART_INTEGER)
        snprintf(number, sizeof(number), "%ld", (long)bits);
    else
        snprintf(number, sizeof(number), "%.14g", real);
    luaL_addstring(text, number);
    return at + 9;
}

void key_text(bool has_names, const uint8_t *key, size_t length, luaL_Buffer *text)
{
    for (const uint8_t *at = key; at < key + length;) {
        if (at > key)
            luaL_addstring(text, ", ");
        at = add_part(has_names, at, text);
    }
}
