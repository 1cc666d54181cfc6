// SPDX-License-Identifier: MIT
//
// Counts words: the interface between the three files of the project.
#pragma once
#include <stddef.h>

typedef struct Word {
    struct Word *next;
    unsigned count;
    char text[];
} Word;

typedef struct {
    Word *buckets[64];
    size_t size;
} Table;

Word *table_find_or_add(Table *table, const char *text, size_t length);
void table_visit(const Table *table, void (*visit)(const Word *word));
void table_free(Table *table);
size_t words_count_line(Table *table, const char *line);
