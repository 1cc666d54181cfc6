// SPDX-License-Identifier: MIT
//
// Splits lines into words.
#include <ctype.h>

#include "words.h"

size_t words_count_line(Table *table, const char *line)
{
    size_t found = 0;
    while (*line) {
        const char *end = line;
        while (isalnum((unsigned char)*end))
            end++;
        if (end > line) {
            table_find_or_add(table, line, (size_t)(end - line))->count++;
            found++;
        } else {
            end++;
        }
        line = end;
    }
    return found;
}
