// SPDX-License-Identifier: MIT
//
// What to do about our own bugs. ASSERT is always on and guards cold code;
// DEBUG_ASSERT guards hot paths and exists only with MUNINN_DEBUG, where it
// still type-checks its condition otherwise. Neither ever becomes an
// assumption for the optimiser.
#ifndef MUNINN_BASE_ASSERT_H
#define MUNINN_BASE_ASSERT_H

#include "base/types.h"

// Prints the crash report of whoever runs in this process. Set once, early, by
// the engine; while it is NULL a panic is one line on descriptor 2.
typedef void PanicHook(const char *file, int line, const char *text);
extern PanicHook *panic_hook;

// Reports and dies by SIGABRT. Takes no lock and allocates nothing. A panic
// inside the hook skips the hook.
_Noreturn void panic_at(const char *file, int line, const char *text);

#define ASSERT(cond) (LIKELY(cond) ? (void)0 : panic_at(__FILE__, __LINE__, #cond))

#if MUNINN_DEBUG
#define DEBUG_ASSERT(cond) ASSERT(cond)
#else
#define DEBUG_ASSERT(cond) ((void)sizeof(!(cond)))
#endif

#endif
