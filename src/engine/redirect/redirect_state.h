// SPDX-License-Identifier: MIT
//
// What interception of functions keeps in a thread: activations of wrapped functions
// (RedirectState), and the calls of lean functions that emitted code follows (LeanState).
#ifndef MUNINN_ENGINE_REDIRECT_REDIRECT_STATE_H
#define MUNINN_ENGINE_REDIRECT_REDIRECT_STATE_H

#include "base/types.h"
#include "wire/wire.h"

struct CachedContext;
struct RedirectThread;
struct ToolSite;

typedef struct RedirectState {
    u64 count;   // activations of wrapped functions
    u32 armed;   // enter the original of what is at pc; that block clears it
    struct RedirectThread *thread; // NULL while nothing needs it
    GuestAddr wrapped_original; // what the wrapper entered last wraps; 0: it is a replacement
} RedirectState;

enum { LEAN_SITES = 1024, LEAN_SLOTS = 2 };

// Of lean functions (lean_hot.c).
typedef struct LeanState {
    // The outermost call that has not returned:
    u64 sp;          // the stack pointer that it returns with, negated; 0: there is none
    u64 size;        // of its size_arg and factor_arg
    u64 args[4];
    u32 hook;        // it, and the innermost that it has called
    u32 inner;
    WireRepeat *repeat; // never NULL if there are lean functions
    struct ToolSite *sites; // likewise; by tool_site_index()
    struct CachedContext *contexts; // of a ContextCache, by calltags_cache_index()
    // What a lean function without `after` was told last: its argument, which it, and where. What
    // it calls with the same argument is not told again.
    u64 told;
    u64 told_function, told_sp;
    GuestAddr slots[LEAN_SLOTS]; // frames that emitted code is naming
    GuestAddr known[LEAN_SITES]; // return sites that are hooked
} LeanState;

#endif
