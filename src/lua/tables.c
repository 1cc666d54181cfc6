// SPDX-License-Identifier: MIT
//
// The tables of a state: from a name and a key to what has been added under it.
#include <stdlib.h>
#include <string.h>

#include "lua/script.h"

const char *const table_kind_names[TABLE_KINDS] = {
    [TABLE_COUNT] = "count", [TABLE_SUM] = "sum", [TABLE_MIN] = "min",
    [TABLE_MAX] = "max",     [TABLE_AVG] = "avg", [TABLE_HIST] = "hist",
};

// -------------------------------------------------------------------- memory

static void *grown(Tables *tables, size_t bytes)
{
    if (tables->bytes + bytes > tables->bytes_max)
        return NULL;
    void *memory = calloc(1, bytes);
    if (memory)
        tables->bytes += bytes;
    return memory;
}

static void given_back(Tables *tables, void *memory, size_t bytes)
{
    if (!memory)
        return;
    free(memory);
    tables->bytes -= bytes;
}

void tables_init(Tables *tables, size_t bytes_max)
{
    *tables = (Tables){.bytes_max = bytes_max};
    pthread_mutex_init(&tables->lock, NULL);
}

static void empty(Tables *tables, Table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        Entry *entry = &table->entries[i];
        if (!entry->key)
            continue;
        given_back(tables, entry->cell.buckets, BUCKETS * sizeof(uint64_t));
        given_back(tables, entry->key, entry->length + 1);
    }
    given_back(tables, table->entries, table->capacity * sizeof(*table->entries));
    table->entries = NULL;
    table->capacity = table->used = 0;
}

void tables_clear(Tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (!name || strcmp(tables->items[i].name, name) == 0)
            empty(tables, &tables->items[i]);
    }
}

// -------------------------------------------------------------------- looking up

Table *tables_find(Tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (strcmp(tables->items[i].name, name) == 0)
            return &tables->items[i];
    }
    return NULL;
}

static Table *add_table(Tables *tables, const char *name, TableKind kind)
{
    Table *items = realloc(tables->items, (tables->count + 1) * sizeof(*items));
    char *copy = strdup(name);
    if (items)
        tables->items = items;
    if (!items || !copy) {
        free(copy);
        return NULL;
    }
    items[tables->count] = (Table){.name = copy, .kind = kind};
    return &items[tables->count++];
}

static uint64_t hash_of(const uint8_t *key, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ key[i]) * 0x100000001b3;
    return hash ^ hash >> 29;
}

// Where the key is, or would be.
static Entry *slot_of(const Table *table, const uint8_t *key, size_t length, uint64_t hash)
{
    for (size_t at = hash & (table->capacity - 1);; at = (at + 1) & (table->capacity - 1)) {
        Entry *entry = &table->entries[at];
        if (!entry->key || (entry->hash == hash && entry->length == length &&
                            memcmp(entry->key, key, length) == 0))
            return entry;
    }
}

static bool make_room(Tables *tables, Table *table)
{
    Table larger = {.capacity = table->capacity ? 2 * table->capacity : 8};
    if (2 * table->used < table->capacity)
        return true;
    larger.entries = grown(tables, larger.capacity * sizeof(*larger.entries));
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        const Entry *entry = &table->entries[i];
        if (entry->key)
            *slot_of(&larger, entry->key, entry->length, entry->hash) = *entry;
    }
    given_back(tables, table->entries, table->capacity * sizeof(*table->entries));
    table->entries = larger.entries;
    table->capacity = larger.capacity;
    return true;
}

// The key's cell, which is made if there is none. NULL: no memory.
static Cell *cell_of(Tables *tables, Table *table, const uint8_t *key, size_t length)
{
    uint64_t hash = hash_of(key, length);
    if (!make_room(tables, table))
        return NULL;
    Entry *entry = slot_of(table, key, length, hash);
    if (entry->key)
        return &entry->cell;
    Entry made = {.hash = hash, .length = (uint32_t)length, .key = grown(tables, length + 1)};
    if (table->kind == TABLE_HIST)
        made.cell.buckets = grown(tables, BUCKETS * sizeof(uint64_t));
    if (!made.key || (table->kind == TABLE_HIST && !made.cell.buckets)) {
        given_back(tables, made.key, length + 1);
        given_back(tables, made.cell.buckets, BUCKETS * sizeof(uint64_t));
        return NULL;
    }
    memcpy(made.key, key, length);
    *entry = made;
    table->used++;
    return &entry->cell;
}

const Cell *table_cell(const Table *table, const uint8_t *key, size_t length)
{
    if (!table->capacity)
        return NULL;
    const Entry *entry = slot_of(table, key, length, hash_of(key, length));
    return entry->key ? &entry->cell : NULL;
}

// -------------------------------------------------------------------- adding

static unsigned bucket_of(int64_t value)
{
    if (value < 0)
        return 0;
    return value == 0 ? 1 : 65 - (unsigned)__builtin_clzll((uint64_t)value);
}

static void add_value(Cell *cell, int64_t value)
{
    if (!cell->count || value < cell->min)
        cell->min = value;
    if (!cell->count || value > cell->max)
        cell->max = value;
    cell->count++;
    cell->sum = (int64_t)((uint64_t)cell->sum + (uint64_t)value);
    if (cell->buckets)
        cell->buckets[bucket_of(value)]++;
}

TablesAdd tables_add(Tables *tables, const char *name, TableKind kind, const uint8_t *key,
                     size_t length, int64_t value)
{
    TablesAdd result = TABLES_ADDED;
    pthread_mutex_lock(&tables->lock);
    Table *table = tables_find(tables, name);
    if (!table)
        table = add_table(tables, name, kind);
    if (table && table->kind != kind) {
        result = TABLES_OTHER_KIND;
    } else {
        Cell *cell = table ? cell_of(tables, table, key, length) : NULL;
        if (cell)
            add_value(cell, value);
        else
            result = TABLES_NO_MEMORY;
    }
    pthread_mutex_unlock(&tables->lock);
    return result;
}

void cell_join(Cell *into, const Cell *other)
{
    if (!into->count || other->min < into->min)
        into->min = other->min;
    if (!into->count || other->max > into->max)
        into->max = other->max;
    into->count += other->count;
    into->sum = (int64_t)((uint64_t)into->sum + (uint64_t)other->sum);
    for (unsigned i = 0; other->buckets && into->buckets && i < BUCKETS; i++)
        into->buckets[i] += other->buckets[i];
}

int64_t cell_value(const Cell *cell, TableKind kind)
{
    switch (kind) {
    case TABLE_SUM: return cell->sum;
    case TABLE_MIN: return cell->min;
    case TABLE_MAX: return cell->max;
    case TABLE_AVG: return cell->count ? cell->sum / cell->count : 0;
    default:        return cell->count;
    }
}

static bool move_table(Tables *to, const Table *table)
{
    bool is_whole = true;
    Table *target = tables_find(to, table->name);
    if (!target)
        target = add_table(to, table->name, table->kind);
    // A script that gives one name to two kinds of table has been told so in its thread.
    if (!target || target->kind != table->kind)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        const Entry *entry = &table->entries[i];
        Cell *cell = entry->key ? cell_of(to, target, entry->key, entry->length) : NULL;
        if (cell)
            cell_join(cell, &entry->cell);
        else if (entry->key)
            is_whole = false;
    }
    return is_whole;
}

bool tables_move(Tables *to, Tables *from)
{
    bool is_whole = true;
    pthread_mutex_lock(&from->lock);
    for (size_t i = 0; i < from->count; i++) {
        is_whole &= move_table(to, &from->items[i]);
        empty(from, &from->items[i]);
    }
    pthread_mutex_unlock(&from->lock);
    return is_whole;
}
