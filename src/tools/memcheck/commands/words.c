// SPDX-License-Identifier: MIT
//
// The words of commands: taken apart, and what is said if they are wrong.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/memcheck/commands/commands.h"
#include "tools/memcheck/leaks/leaks.h"

void command_say(ToolThread *thread, const char *text)
{
    if (thread->relay.answering)
        leaks_say(thread, text);
    else
        relay_note(thread, text);
}

char *command_next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t\n");
    if (!*word)
        return NULL;
    char *end = word + strcspn(word, " \t\n");
    *rest = *end ? end + 1 : end;
    *end = 0;
    return word;
}

int command_find_word(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (strncmp(word, words[i], strlen(word)) == 0)
            return i;
    }
    return -1;
}

void command_complain(ToolThread *thread, const char *word, const char *const *words)
{
    char text[512];
    int at = snprintf(text, sizeof(text), "%.100s does not match any of '", word ? word : "");
    for (int i = 0; words[i] && at < (int)sizeof(text) - 40; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s ", words[i]);
    snprintf(text + at, sizeof(text) - (size_t)at, "'\n");
    relay_answer(thread, text);
}

bool command_take_range(ToolThread *thread, char **rest, GuestAddr *ret_start, u64 *ret_size)
{
    char *word = command_next_word(rest), *end;
    *ret_size = 1;
    if (!word) {
        relay_answer(thread, "missing or malformed address\n");
        return false;
    }
    *ret_start = strtoull(word, &end, 0);
    if (*end == '[') {
        *ret_size = strtoull(end + 1, &end, 0);
        end += *end == ']';
    } else if (*end == 0 && (word = command_next_word(rest))) {
        *ret_size = strtoull(word, &end, 0);
    }
    if (*end == 0)
        return true;
    relay_answer(thread, "missing or malformed address or length\n");
    return false;
}

bool command_take_set(const char *text, const char *const *names, const u32 *bits, u32 *ret_set)
{
    u32 set = 0;
    if (!text)
        return false;
    while (*text) {
        size_t length = strcspn(text, ",");
        int found = -1;
        for (int i = 0; names[i]; i++) {
            if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
                found = i;
        }
        if (found < 0)
            return false;
        set |= bits[found];
        text += length + (text[length] == ',');
    }
    *ret_set = set;
    return true;
}
