// SPDX-License-Identifier: MIT
//
// A rule of --inject, and its words; private to perform/.
#ifndef MUNINN_ENGINE_PERFORM_INJECT_RULES_H
#define MUNINN_ENGINE_PERFORM_INJECT_RULES_H

#include "engine/syscall/syscall.h"

#define INJECT_WORDS ((NR_LIMIT + 63) / 64)

typedef struct InjectRule {
    u64 calls[INJECT_WORDS]; // a bit for each number
    bool is_faked;           // the call is not performed, and has this result
    i64 result;
    int signal;              // sent to the thread before the call; 0: none
    u64 enter_ns, exit_ns;
    u32 first, last, step;   // which of the thread's calls of that number, from 1; step 0: one only
} InjectRule;

// "SET:error=ENOENT:when=3+2". False: ret_error says what is wrong.
bool inject_parse(const char *text, InjectRule *ret_rule, char *ret_error, size_t size);

#endif
