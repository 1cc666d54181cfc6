// SPDX-License-Identifier: MIT
//
// Memcheck's commands, and the requests of the program.
#ifndef MUNINN_TOOLS_MEMCHECK_COMMANDS_COMMANDS_H
#define MUNINN_TOOLS_MEMCHECK_COMMANDS_COMMANDS_H

#include "engine/toolapi/toolapi.h"

extern const char commands_help[];                     // Tool.command_help
bool commands_run(ToolThread *thread, char *command); // Tool.command

// --- leaks.c
void commands_leak_check(ToolThread *thread, char *rest);
void commands_block_list(ToolThread *thread, char *rest);
void commands_who_points_at(ToolThread *thread, char *rest);

// --- words.c
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

// --- requests.c
bool requests_run(ToolThread *thread, const u64 args[6], u64 *ret_result); // Tool.request
// An answer was written there: it is defined, if the program may touch it, and told of if not.
void requests_answered(ToolThread *thread, GuestAddr start, u64 size); // Tool.answered
// Calls fn for those parts of a range that are client memory, in order, under the engine lock.
typedef void MappedVisit(void *data, GuestAddr start, u64 size);
void requests_for_mapped(GuestAddr start, u64 size, MappedVisit *fn, void *data);
bool requests_is_mapped(GuestAddr start, u64 size); // all of it
// The first byte of each kind in a range; ~0: none.
typedef struct RequestSearch {
    GuestAddr noaccess, undefined;
} RequestSearch;
RequestSearch requests_search(ToolThread *thread, GuestAddr start, u64 size);
// What a finding says of the innermost call: the instruction at which the thread is.
u32 requests_context(ToolThread *thread);

#endif
