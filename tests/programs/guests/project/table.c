// SPDX-License-Identifier: MIT
//
// The hash table of words.
#include <stdlib.h>
#include <string.h>

#include "words.h"

static unsigned hash(const char *text, size_t length)
{
    unsigned value = 5381;
    for (size_t i = 0; i < length; i++)
        value = value * 33 + (unsigned char)text[i];
    return value % 64;
}

Word *table_find_or_add(Table *table, const char *text, size_t length)
{
    Word **bucket = &table->buckets[hash(text, length)];
    for (Word *word = *bucket; word; word = word->next)
        if (strlen(word->text) == length && memcmp(word->text, text, length) == 0)
            return word;
    Word *word = calloc(1, sizeof(*word) + length + 1);
    if (!word)
        abort();
    memcpy(word->text, text, length);
    word->next = *bucket;
    *bucket = word;
    table->size++;
    return word;
}

void table_visit(const Table *table, void (*visit)(const Word *word))
{
    for (size_t i = 0; i < 64; i++)
        for (const Word *word = table->buckets[i]; word; word = word->next)
            visit(word);
}

void table_free(Table *table)
{
    for (size_t i = 0; i < 64; i++) {
        for (Word *word = table->buckets[i], *next; word; word = next) {
            next = word->next;
            free(word);
        }
    }
}
