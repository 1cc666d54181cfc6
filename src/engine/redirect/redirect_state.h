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
    u32 armed;   // the thread is to enter the original at pc; that block clears this
    struct RedirectThread *thread; // NULL while nothing needs it
    GuestAddr wrapped_original; // what the wrapper entered last wraps; 0: it is a replacement
} RedirectState;

enum { LEAN_SITES = 1024, LEAN_SLOTS = 2 };

// The thread's call of lean functions (lean_hot.c).
typedef struct LeanState {
    // The outermost call that has not returned:
    u64 sp;          // the stack pointer that the call returns with, negated; 0: there is no call
    u64 size;        // the product of size_arg and factor_arg
    u64 args[4];
    u32 hook;        // the function called
    u32 inner;       // the innermost lean function that it has called
    WireRepeat *repeat; // never NULL if there are lean functions
    struct ToolSite *sites; // likewise; by tool_site_index()
    struct CachedContext *contexts; // of a ContextCache, by calltags_cache_index()
    // The last reported call of a lean function without `after`: its argument, the function, and
    // its stack pointer. A call that it makes with the same argument is not reported again.
    u64 told;
    u64 told_function, told_sp;
    GuestAddr slots[LEAN_SLOTS]; // frames that emitted code is naming
    GuestAddr known[LEAN_SITES]; // return sites that are hooked
} LeanState;

#endif
