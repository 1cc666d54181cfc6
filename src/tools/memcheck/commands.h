// SPDX-License-Identifier: MIT
//
// Memcheck's commands; private to memcheck/.
#ifndef MUNINN_TOOLS_MEMCHECK_COMMANDS_H
#define MUNINN_TOOLS_MEMCHECK_COMMANDS_H

#include "engine/toolapi/toolapi.h"

extern const char commands_help[];                     // Tool.command_help
bool commands_run(ToolThread *thread, char *command); // Tool.command

// --- commands_leaks.c
void commands_leak_check(ToolThread *thread, char *rest);
void commands_block_list(ToolThread *thread, char *rest);
void commands_who_points_at(ToolThread *thread, char *rest);

// --- command_words.c
// A line of an answer that reads as one of the report.
void command_say(ToolThread *thread, const char *text);
// The next word, which is cut out of `rest`; NULL: there is none.
char *command_next_word(char **rest);
// The index of the word in a list that ends in NULL, by its beginning; -1: none.
int command_find_word(const char *word, const char *const *words);
// The word is none of these.
void command_complain(ToolThread *thread, const char *word, const char *const *words);
// ADDRESS [SIZE], or ADDRESS[SIZE]. False: it is neither, and has been said.
bool command_take_range(ToolThread *thread, char **rest, GuestAddr *ret_start, u64 *ret_size);
// "definite,possible", "all", "none"; false: a word is unknown, or there is none.
bool command_take_set(const char *text, const char *const *names, const u32 *bits, u32 *ret_set);

#endif
