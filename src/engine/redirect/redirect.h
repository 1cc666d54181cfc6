// SPDX-License-Identifier: MIT
//
// Interception of the client's functions by name: the engine side of
// ToolFunction (toolapi/toolapi.h).
//
// When the client maps code from an ELF file, the symbols of that file are
// compared with the tool's table and the addresses that match become hooks. The
// translator asks for the hook of every pc at which a block starts or goes on,
// and gives a hooked block a prologue that calls the functions at the end of
// this header. Hot handlers are called from the cache. For the others, and
// for every rare case, the thread leaves the cache by EXIT_REDIRECT.
//
// Glossary
//   hook        a guest pc with a prologue: the entry of an intercepted function,
//               or a return site
//   return site a pc to which a wrapped function has been seen to return. The engine
//               never changes the client's stack. Instead the block at that pc looks
//               for an activation that ends there, which costs five instructions
//               while the thread has no activation
//   activation  a call of a wrapped function that has not returned, told apart by
//               its stack pointer and return address
//   original    the code of a hooked pc without the prologue, a block of its own
//               (VERSION_ORIGINAL). It is entered from C, by a wrapper's request, and by the
//               function's own jumps back to its first instruction, which are no calls.
//               If a signal arrives when it is about to be entered, the signal's frame says so
//   wrapper     a function of the program's that runs instead of another one, found by its
//               name (base/wrap_name.h): a hook with a wrapper leads to it
//
// What must stay true
//   F1  Hooks change under the engine lock only. A hook's record lives for
//       ever, since emitted code and threads name it by its index.
//   F2  A block that is no original holds a hooked pc as its first instruction only,
//       so every arrival passes the prologue.
//   F3  There is no boundary between a prologue and the first instruction, so a
//       signal cannot make the prologue run twice for one call.
#ifndef MUNINN_ENGINE_REDIRECT_REDIRECT_H
#define MUNINN_ENGINE_REDIRECT_REDIRECT_H

#include "base/types.h"
#include "launch/options.h"

struct ThreadCtx;

// Prepares the tool's table of functions. To be called before the loader maps anything.
void redirect_init(const Options *options);

// To be called when --verbose or --trace-redir has changed.
void redirect_options_changed(const Options *options);

// To be called when a signal ends the process: tells the user if a replaced allocator may be the
// reason.
void redirect_tell_death(const struct ThreadCtx *ctx, int signal);

// To be called when [start, end) was unmapped or replaced: forgets the functions found there.
// Engine lock held.
void redirect_unmapped(GuestAddr start, GuestAddr end);

// Does nothing if the tool intercepts nothing. False: no memory.
bool redirect_thread_start(struct ThreadCtx *ctx);
// To be called when the thread ends: calls ToolFunction.left for its calls that have not returned.
void redirect_thread_ending(struct ThreadCtx *ctx);
void redirect_thread_end(struct ThreadCtx *ctx);

// --- for the dispatcher

// After EXIT_REDIRECT: runs the handlers of the hook; ctx says where to go on. False: no memory is
// mapped at the client's stack pointer, which is a fault of the client's.
bool redirect_run(struct ThreadCtx *ctx);

// To be called when the thread returns to a `pc` at which there is no code: ends the activations
// that return there with the thread's stack pointer.
void redirect_returned(struct ThreadCtx *ctx, GuestAddr pc);

// To be called when a signal is about to be delivered. If the first guard of a hooked block has
// failed, notes that the block's prologue has run already.
void redirect_note_interrupted(struct ThreadCtx *ctx);

// The version of the block to enter at ctx->pc.
u32 redirect_version(const struct ThreadCtx *ctx);

// To be called when rsp has been loaded, or a return has led to an unexpected `target`: ends the
// lean calls below `sp`.
void redirect_lean_unwound(struct ThreadCtx *ctx, u64 sp, GuestAddr target);

// --- for the translator; engine lock held

typedef struct RedirectSite {
    u32 hook;
    bool entry;    // it is the entry of an intercepted function
    GuestAddr goes_to; // the program's own wrapper or replacement; 0: there is none
    bool wraps;        // goes_to is a wrapper: it may ask which function it wraps
    bool returns;  // it is a return site
    bool fast;     // the handler may be called from the cache
    bool slow_return; // the return site needs a handler that runs outside the cache
    bool replaces; // the original does not run
    const struct ToolFunction *quick; // NULL: it has no fast form
    bool is_lean_site; // a return site of lean functions
    const struct ToolFunction *lean; // NULL: it is not lean
} RedirectSite;

// Whether `pc` is hooked; *ret_site tells how.
bool redirect_find(GuestAddr pc, RedirectSite *ret_site);
bool redirect_is_hooked(GuestAddr pc);
// Whether `pc` is the entry of an intercepted function.
bool redirect_is_entry(GuestAddr pc);

// Whether a jump at `pc` to `target` stays inside the intercepted function that
// begins at `target`.
bool redirect_is_own_entry(GuestAddr pc, GuestAddr target);

// --- called by emitted code on the engine's stack; general registers only
// The client's values of the registers that a C function may change are in ctx->gpr. If the result
// is not 0, the code leaves the cache by EXIT_REDIRECT with exit_link = hook | REDIRECT_BEGUN.
u32 redirect_fast_entry(u32 hook); // ctx->gateway.call_address: the return address
u32 redirect_fast_return(u32 hook);
u32 redirect_lean_return(u32 hook);
u32 redirect_lean_context(u32 pc); // Tool.lean_context
u32 redirect_lean_before(u32 hook);
#define REDIRECT_BEGUN 0x80000000u
// Another bit of exit_link: the fast form has done the call, and the result is in rax.
#define REDIRECT_DONE 0x40000000u

typedef struct RedirectStats {
    u64 modules, symbols, hooks, return_sites, slow_exits, ns;
} RedirectStats;
extern RedirectStats redirect_stats;

#endif
