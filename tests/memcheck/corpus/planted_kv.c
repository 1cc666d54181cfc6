// SPDX-License-Identifier: MIT
//
// A small key-value server of the kind of redis: counted strings, a hash table that grows while it is
// used, values that expire, a parser of commands. Each case plants one bug in it; the first plants none.
#include "corpus.h"

enum Bug {
    BUG_NONE, BUG_NO_ROOM_FOR_END, BUG_READ_AFTER_DELETE, BUG_FREED_TWICE, BUG_NO_EXPIRY,
    BUG_VALUE_LOST, BUG_OLD_TABLE, BUG_SHORT_COPY, BUG_WRONG_FREE, BUG_NEGATIVE_INDEX,
};
static volatile int bug;

// ------------------------------------------------------------------ strings
typedef struct Text {
    u32 length, room;
    char bytes[];
} Text;

static NOINLINE Text *text_new(const char *from, u32 length)
{
    u32 room = length + (bug == BUG_NO_ROOM_FOR_END ? 0 : 1);
    Text *t = (Text *)malloc(sizeof(Text) + room);
    t->length = length;
    t->room = room;
    for (u32 i = 0; i < length; i++)
        t->bytes[i] = from[i];
    t->bytes[length] = 0;
    return t;
}

static NOINLINE Text *text_append(Text *t, const Text *more)
{
    u32 length = t->length + more->length;
    if (length + 1 > t->room) {
        t = (Text *)realloc(t, sizeof(Text) + 2 * length + 1);
        t->room = 2 * length + 1;
    }
    u32 copied = bug == BUG_SHORT_COPY ? more->length - 1 : more->length;
    memcpy(t->bytes + t->length, more->bytes, copied);
    t->length = length;
    t->bytes[length] = 0;
    return t;
}

// --------------------------------------------------------------- the table
typedef struct Entry {
    struct Entry *next;
    Text *key, *value;
    u64 expires; // 0: never
} Entry;

typedef struct Table {
    Entry **slots;
    u32 size, used;
} Table;

static NOINLINE u32 hash(const char *key, u32 length)
{
    u32 h = 5381;
    for (u32 i = 0; i < length; i++)
        h = h * 33 ^ (u8)key[i];
    return h;
}

static NOINLINE void table_grow(Table *table)
{
    Entry **old = table->slots, **slots = (Entry **)calloc(table->size * 2, sizeof(Entry *));
    for (u32 i = 0; i < table->size; i++) {
        for (Entry *e = old[i], *next; e; e = next) {
            u32 slot = hash(e->key->bytes, e->key->length) % (table->size * 2);
            next = e->next;
            e->next = slots[slot];
            slots[slot] = e;
        }
    }
    table->slots = slots;
    table->size *= 2;
    free(old);
}

static NOINLINE Entry *table_find(Table *table, const char *key, u32 length)
{
    u32 slot = hash(key, length) % table->size;
    for (Entry *e = table->slots[slot]; e; e = e->next) {
        if (e->key->length == length && memcmp(e->key->bytes, key, length) == 0)
            return e;
    }
    return NULL;
}

static NOINLINE void table_set(Table *table, const char *key, u32 length, Text *value)
{
    Entry *e = table_find(table, key, length);
    if (e) {
        if (bug != BUG_VALUE_LOST)
            free(e->value);
        e->value = value;
        return;
    }
    Entry **slots = table->slots;
    u32 size = table->size;
    if (++table->used > table->size)
        table_grow(table);
    if (bug != BUG_OLD_TABLE)
        slots = table->slots, size = table->size;
    e = (Entry *)malloc(sizeof(Entry));
    e->key = text_new(key, length);
    e->value = value;
    if (bug != BUG_NO_EXPIRY)
        e->expires = 0;
    u32 slot = hash(key, length) % size;
    e->next = slots[slot];
    slots[slot] = e;
}

static NOINLINE void entry_free(Entry *e)
{
    free(e->key);
    free(e->value);
    free(e);
    if (bug == BUG_FREED_TWICE)
        free(e->value);
}

static NOINLINE u32 table_expire(Table *table, u64 now)
{
    u32 expired = 0;
    for (u32 i = 0; i < table->size; i++) {
        for (Entry **place = &table->slots[i]; *place;) {
            Entry *e = *place;
            if (e->expires && e->expires <= now) {
                *place = e->next;
                entry_free(e);
                if (bug == BUG_READ_AFTER_DELETE)
                    *place = e->next;
                table->used--;
                expired++;
            } else {
                place = &e->next;
            }
        }
    }
    return expired;
}

static NOINLINE void table_free(Table *table)
{
    for (u32 i = 0; i < table->size; i++) {
        for (Entry *e = table->slots[i], *next; e; e = next) {
            next = e->next;
            entry_free(e);
        }
    }
    free(table->slots);
}

// ------------------------------------------------------------- the commands
static NOINLINE char *word_of(char **at, u32 *length)
{
    while (**at == ' ')
        ++*at;
    char *start = *at;
    while (**at && **at != ' ')
        ++*at;
    *length = *at - start;
    return start;
}

static NOINLINE u64 number_of(const char *text, u32 length)
{
    u64 n = 0;
    for (int i = bug == BUG_NEGATIVE_INDEX ? -1 : 0; i < (int)length; i++)
        n = n * 10 + text[i] - '0';
    return n;
}

static NOINLINE u64 run(Table *table, const char *line)
{
    u32 length, key_length, rest_length;
    char *copy = strdup(line), *at = copy;
    char *command = word_of(&at, &length), *key = word_of(&at, &key_length);
    char *rest = word_of(&at, &rest_length);
    Entry *e = table_find(table, key, key_length);
    u64 result = 0;
    if (length == 3 && memcmp(command, "SET", 3) == 0) {
        table_set(table, key, key_length, text_new(rest, rest_length));
    } else if (length == 6 && memcmp(command, "APPEND", 6) == 0 && e) {
        Text *more = text_new(rest, rest_length);
        e->value = text_append(e->value, more);
        free(more);
    } else if (length == 6 && memcmp(command, "EXPIRE", 6) == 0 && e) {
        char *number = (char *)malloc(rest_length);
        memcpy(number, rest, rest_length);
        e->expires = number_of(number, rest_length);
        free(number);
    } else if (length == 3 && memcmp(command, "GET", 3) == 0 && e) {
        result = hash(e->value->bytes, e->value->length);
    }
    if (bug == BUG_WRONG_FREE)
        free(command + length);
    free(copy);
    return result;
}

static NOINLINE void serve(enum Bug planted)
{
    char line[64];
    Table table = {.slots = (Entry **)calloc(4, sizeof(Entry *)), .size = 4};
    bug = planted;
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "SET key%d value%d", i % 30, i);
        run(&table, line);
    }
    for (int i = 0; i < 30; i += 3) {
        snprintf(line, sizeof line, "APPEND key%d more", i);
        run(&table, line);
        snprintf(line, sizeof line, "GET key%d", i);
        BRANCH(run(&table, line) & 0xff);
        snprintf(line, sizeof line, "EXPIRE key%d %d", i, 100 + i);
        run(&table, line);
    }
    u32 expired = table_expire(&table, 115);
    CHECK(planted != BUG_NONE || expired == 6);
    bug = planted == BUG_FREED_TWICE ? BUG_NONE : planted;
    table_free(&table);
}

CASE(none) // OPTIONS --leak-check=full
{
    serve(BUG_NONE);
}

CASE(no_room_for_the_end)
{
    serve(BUG_NO_ROOM_FOR_END);
    // EXPECT memcheck invalid-write size=1 block=after:0 line=any top=text_new
    // MAYBE memcheck invalid-read size=1 line=any
    // MAYBE memcheck invalid-write size=1 line=any
}

CASE(read_after_delete)
{
    serve(BUG_READ_AFTER_DELETE);
    // EXPECT memcheck invalid-read size=8 block=inside:0 of=32 state=freed line=any
}

CASE(freed_twice)
{
    serve(BUG_FREED_TWICE);
    // EXPECT memcheck invalid-read size=8 block=inside:16 of=32 state=freed line=any top=entry_free
    // EXPECT memcheck invalid-free line=any
}

CASE(no_expiry)
{
    serve(BUG_NO_EXPIRY);
    // EXPECT memcheck uninit-branch origin=heap line=any
    // MAYBE memcheck uninit-branch line=any
}

CASE(value_lost) // OPTIONS --leak-check=full
{
    serve(BUG_VALUE_LOST); // EXPECT memcheck leak-definite blocks=10 line=any
}

CASE(old_table)
{
    serve(BUG_OLD_TABLE);
    // EXPECT memcheck invalid-read size=8 state=freed line=any top=table_set
    // EXPECT memcheck invalid-write size=8 state=freed line=any top=table_set
}

CASE(short_copy)
{
    serve(BUG_SHORT_COPY);
    // EXPECT memcheck uninit-branch origin=heap line=any
}

CASE(wrong_free)
{
    serve(BUG_WRONG_FREE); // EXPECT memcheck invalid-free line=any
}

CASE(negative_index)
{
    serve(BUG_NEGATIVE_INDEX);
    // EXPECT memcheck invalid-read size=1 block=before:1 line=any top=number_of
    // MAYBE memcheck uninit-branch line=any
}
