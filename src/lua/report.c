// SPDX-License-Identifier: MIT
//
// Tables as text, largest first; and histograms.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/script.h"

// A row under the text of its key. Keys of one text, such as two places in one line, are one row.
typedef struct Row {
    const char *text; // on the stack of the Lua state
    Cell cell;
} Row;

typedef struct Rows {
    Row *items; // a userdata on the stack of the Lua state
    size_t count;
    TableKind kind;
} Rows;

// ---------------------------------------------------------------------------- rows

static TableKind sorted_kind;

static int compare_rows(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    int64_t left = cell_value(&x->cell, sorted_kind), right = cell_value(&y->cell, sorted_kind);
    if (left != right)
        return left < right ? 1 : -1;
    return strcmp(x->text, y->text);
}

static Row *row_of(lua_State *L, Rows *rows, int index_of_texts)
{
    // The text is on top; the table of texts tells the row that has it already.
    lua_pushvalue(L, -1);
    lua_rawget(L, index_of_texts);
    lua_Integer known = lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (known)
        return &rows->items[known - 1];
    Row *row = &rows->items[rows->count++];
    row->text = lua_tostring(L, -1);
    lua_pushvalue(L, -1);
    lua_pushinteger(L, (lua_Integer)rows->count);
    lua_rawset(L, index_of_texts);
    return row;
}

// Leaves two values on the stack that own the rows.
static Rows rows_of(State *state, const Table *table)
{
    lua_State *L = state->L;
    size_t histogram = table->kind == TABLE_HIST ? BUCKETS * sizeof(uint64_t) : 0;
    Rows rows = {.kind = table->kind};
    size_t room = table->used * (sizeof(Row) + histogram) + 1;

    rows.items = lua_newuserdatauv(L, room, 0);
    memset(rows.items, 0, room);
    uint64_t *buckets = (uint64_t *)(rows.items + table->used);
    lua_newtable(L);
    int texts = lua_gettop(L);
    for (size_t i = 0; i < table->capacity; i++) {
        const Entry *entry = &table->entries[i];
        luaL_Buffer text;
        if (!entry->key)
            continue;
        luaL_buffinit(L, &text);
        key_text(true, entry->key, entry->length, &text);
        luaL_pushresult(&text);
        Row *row = row_of(L, &rows, texts);
        if (histogram)
            row->cell.buckets = buckets + BUCKETS * (size_t)(row - rows.items);
        cell_join(&row->cell, &entry->cell);
        lua_pop(L, 1);
    }
    sorted_kind = rows.kind;
    qsort(rows.items, rows.count, sizeof(Row), compare_rows);
    return rows;
}

// ---------------------------------------------------------------------------- text

// 4096 is "4K".
static void bound_text(uint64_t bound, char *text, size_t size)
{
    static const char units[] = " KMGTPE";
    unsigned unit = 0;
    while (bound >= 1024 && bound % 1024 == 0) {
        bound /= 1024;
        unit++;
    }
    snprintf(text, size, unit ? "%lu%c" : "%lu", (unsigned long)bound, units[unit]);
}

static void bucket_label(unsigned bucket, char *label, size_t size)
{
    char low[32], high[32];
    if (bucket == 0)
        snprintf(label, size, "(..., 0)");
    else if (bucket == 1)
        snprintf(label, size, "[0]");
    else if (bucket == 2)
        snprintf(label, size, "[1]");
    else {
        bound_text((uint64_t)1 << (bucket - 2), low, sizeof(low));
        bound_text((uint64_t)1 << (bucket - 1), high, sizeof(high));
        snprintf(label, size, "[%s, %s)", low, high);
    }
}

static void print_histogram(const uint64_t *buckets)
{
    enum { WIDTH = 52 };
    static const char bar[WIDTH + 1] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
    unsigned first = BUCKETS, last = 0;
    uint64_t most = 1;

    for (unsigned i = 0; i < BUCKETS; i++) {
        if (!buckets[i])
            continue;
        first = first < i ? first : i;
        last = i;
        most = buckets[i] > most ? buckets[i] : most;
    }
    for (unsigned i = first; i <= last; i++) {
        char label[80];
        bucket_label(i, label, sizeof(label));
        int length = (int)((double)buckets[i] * WIDTH / (double)most);
        speak_format("%-16s %8lu |%-*.*s|", label, (unsigned long)buckets[i], WIDTH, length, bar);
    }
}

static void print_row(const Row *row, TableKind kind)
{
    if (kind == TABLE_AVG)
        speak_format("%14ld %10ld  %s", (long)cell_value(&row->cell, kind), (long)row->cell.count,
                     row->text);
    else
        speak_format("%14ld  %s", (long)cell_value(&row->cell, kind), row->text);
}

static void print_rows(const Table *table, const Rows *rows, size_t shown)
{
    bool is_single = rows->count == 1 && !*rows->items[0].text;

    if (table->kind == TABLE_HIST) {
        for (size_t i = 0; i < shown; i++) {
            speak_format("%s%s%s:", table->name, is_single ? "" : ", ", rows->items[i].text);
            print_histogram(rows->items[i].cell.buckets);
        }
    } else if (is_single && table->kind == TABLE_AVG) {
        speak_format("%s: %ld of %ld", table->name, (long)cell_value(&rows->items->cell, TABLE_AVG),
                     (long)rows->items->cell.count);
    } else if (is_single) {
        speak_format("%s: %ld", table->name, (long)cell_value(&rows->items->cell, table->kind));
    } else {
        speak_format("%s:%s", table->name, table->kind == TABLE_AVG ? " average, count" : "");
        for (size_t i = 0; i < shown; i++)
            print_row(&rows->items[i], table->kind);
    }
}

void report_table(State *state, const Table *table, uint64_t top)
{
    int height = lua_gettop(state->L);
    if (!table->used)
        return;
    Rows rows = rows_of(state, table);
    size_t shown = top && top < rows.count ? (size_t)top : rows.count;
    print_rows(table, &rows, shown);
    if (shown < rows.count)
        speak_format("and %lu more", (unsigned long)(rows.count - shown));
    lua_settop(state->L, height);
}

static void set_number(lua_State *L, const char *name, int64_t number)
{
    lua_pushinteger(L, number);
    lua_setfield(L, -2, name);
}

void report_push_rows(State *state, const Table *table)
{
    lua_State *L = state->L;
    lua_newtable(L);
    int list = lua_gettop(L);
    if (!table || !table->used)
        return;
    Rows rows = rows_of(state, table);
    for (size_t i = 0; i < rows.count; i++) {
        const Cell *cell = &rows.items[i].cell;
        lua_newtable(L);
        lua_pushstring(L, rows.items[i].text);
        lua_setfield(L, -2, "key");
        set_number(L, "value", cell_value(cell, rows.kind));
        set_number(L, "count", cell->count);
        set_number(L, "sum", cell->sum);
        set_number(L, "min", cell->min);
        set_number(L, "max", cell->max);
        lua_rawseti(L, list, (lua_Integer)i + 1);
    }
    lua_settop(L, list);
}

// ---------------------------------------------------------------------------- the end

static int print_all(lua_State *L)
{
    State *state = state_of(L);
    for (size_t i = 0; i < state->tables.count; i++)
        report_table(state, &state->tables.items[i], script_options.top);
    return 0;
}

static void print_unreached(void)
{
    char list[512] = "";
    for (uint32_t i = 0; i < probe_count; i++) {
        const Probe *probe = probes[i];
        size_t length = strlen(list);
        if (probe->kind >= PROBE_COUNT_INSN)
            continue;
        if (__atomic_load_n(&probe->was_reached, __ATOMIC_RELAXED))
            return;
        snprintf(list + length, sizeof(list) - length, "%s%s", length ? ", " : "", probe->title);
    }
    if (*list)
        speak_format("nothing has happened that the script waits for: %s", list);
}

void report_end(void)
{
    bool has_own_end = false;
    pthread_mutex_lock(&home_lock);
    states_gather();
    for (uint32_t i = 0; i < probe_count; i++) {
        if (probes[i]->kind != PROBE_AT_END)
            continue;
        has_own_end = true;
        if (state_begin(home, probes[i], ROLE_BEFORE, &(Event){.kind = EVENT_OTHER}))
            state_call(home, probes[i], 0, 0);
    }
    if (!has_own_end) {
        lua_pushcfunction(home->L, print_all);
        lua_call(home->L, 0, 0);
    }
    state_end(home);
    print_unreached();
    pthread_mutex_unlock(&home_lock);
}
