// SPDX-License-Identifier: MIT
//
// Reads standard input and prints each word with its count.
#include <stdio.h>

#include "words.h"

static void print_word(const Word *word)
{
    printf("%s %u\n", word->text, word->count);
}

int main(void)
{
    static Table table;
    char line[4096];
    size_t total = 0;
    while (fgets(line, sizeof(line), stdin))
        total += words_count_line(&table, line);
    table_visit(&table, print_word);
    fprintf(stderr, "%zu words, %zu different\n", total, table.size);
    table_free(&table);
    return 0;
}
