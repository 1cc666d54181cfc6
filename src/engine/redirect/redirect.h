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
//   return site where a wrapped function has been seen to return to. The client's
//               stack is never changed; instead the block at that pc looks for an
//               activation that ends there, which costs five instructions
//               while the thread has none
//   activation  a call of a wrapped function that has not returned, told apart by
//               its stack pointer and return address
//   original    the code of a hooked pc without the prologue, a block of its own
//               (VERSION_ORIGINAL), entered from C, by a wrapper's request, and by the
//               function's own jumps back to its first instruction, which are no calls.
//               A signal that arrives before it keeps in its frame that it was to be entered
//   wrapper     a function that the program has brought along to run instead of another,
//               found by its name (base/wrap_name.h): at a hook that has one code goes on there
//
// What must stay true
//   F1  Hooks change under the engine lock only, and a hook's record lives for
//       ever: emitted code and threads name it by its index.
//   F2  No block but the original one holds a hooked pc behind its first
//       instruction, so every arrival passes the prologue.
//   F3  Behind a prologue there is no boundary before the first instruction:
//       a signal can not make it run twice for one call.
#ifndef MUNINN_ENGINE_REDIRECT_REDIRECT_H
#define MUNINN_ENGINE_REDIRECT_REDIRECT_H

#include "base/types.h"
#include "launch/options.h"

struct ThreadCtx;

// Prepares for the tool's table of functions. Before the loader maps anything.
void redirect_init(const Options *options);

// --verbose or --trace-redir has been changed.
void redirect_options_changed(const Options *options);

// A signal ends the process: tells the user if an allocator that was replaced may be why.
void redirect_tell_death(const struct ThreadCtx *ctx, int signal);

// [start, end) is not what it was: functions found there are gone. Engine lock held.
void redirect_unmapped(GuestAddr start, GuestAddr end);

// False: no memory. Nothing happens when the tool intercepts nothing.
bool redirect_thread_start(struct ThreadCtx *ctx);
// The thread ends: of its calls that have not returned ToolFunction.left is told.
void redirect_thread_ending(struct ThreadCtx *ctx);
void redirect_thread_end(struct ThreadCtx *ctx);

// --- for the dispatcher

// After EXIT_REDIRECT: runs what the hook asks for; ctx says where to go on. False: the client's
// stack pointer leads to no memory, which is a fault of the client's.
bool redirect_run(struct ThreadCtx *ctx);

// The thread has returned to `pc`: ends the activations that do so with its stack
// pointer. For returns to where there is no code.
void redirect_returned(struct ThreadCtx *ctx, GuestAddr pc);

// A signal is about to be delivered. Where a block's first guard has failed its prologue is passed.
void redirect_note_interrupted(struct ThreadCtx *ctx);

// The version of the block to enter at ctx->pc.
u32 redirect_version(const struct ThreadCtx *ctx);

// rsp has been loaded, or a return has led to an unexpected `target`: lean calls below it
// are over.
void redirect_lean_unwound(struct ThreadCtx *ctx, u64 sp, GuestAddr target);

// --- for the translator; engine lock held

typedef struct RedirectSite {
    u32 hook;
    bool entry;    // of an intercepted function
    GuestAddr goes_to; // 0: no wrapper or replacement that the program has brought along
    bool wraps;        // a wrapper: it may ask which function it wraps
    bool returns;  // a return site
    bool fast;     // the handler may be called from the cache
    bool slow_return; // what a return site has to do is done outside it, too
    bool replaces; // the original does not run
    const struct ToolFunction *quick; // NULL: it has no fast form
    bool is_lean_site; // a return site of lean functions
    const struct ToolFunction *lean; // NULL: it is not lean
} RedirectSite;

// Whether `pc` is hooked, and how.
bool redirect_find(GuestAddr pc, RedirectSite *ret_site);
bool redirect_is_hooked(GuestAddr pc);
// The same, of a function, not of a return site alone.
bool redirect_is_entry(GuestAddr pc);

// Whether a jump at `pc` to `target` stays inside the intercepted function that
// begins at `target`.
bool redirect_is_own_entry(GuestAddr pc, GuestAddr target);

// --- called by emitted code, on the engine's stack, with the registers that a C
// function may change in ctx->gpr; general registers only. Not 0: leave the
// cache by EXIT_REDIRECT with exit_link = hook | REDIRECT_BEGUN.
u32 redirect_fast_entry(u32 hook); // ctx->gateway.call_address: the return address
u32 redirect_fast_return(u32 hook);
u32 redirect_lean_return(u32 hook);
u32 redirect_lean_context(u32 pc); // Tool.lean_context
u32 redirect_lean_before(u32 hook);
#define REDIRECT_BEGUN 0x80000000u
// In exit_link too: ToolFunction.quick has done it, and the result is in rax.
#define REDIRECT_DONE 0x40000000u

typedef struct RedirectStats {
    u64 modules, symbols, hooks, return_sites, slow_exits, ns;
} RedirectStats;
extern RedirectStats redirect_stats;

#endif
