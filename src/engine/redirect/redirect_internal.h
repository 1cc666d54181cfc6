// SPDX-License-Identifier: MIT
//
// What the files of redirect/ share.
#ifndef MUNINN_ENGINE_REDIRECT_REDIRECT_INTERNAL_H
#define MUNINN_ENGINE_REDIRECT_REDIRECT_INTERNAL_H

#include "engine/aspace/aspace.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"

// One for each pc that was ever hooked; a pc that is hooked again gets its old one (F1).
typedef struct Hook {
    GuestAddr pc;
    const ToolFunction *function; // NULL: not an entry
    u64 size_bytes;   // of the function, as its symbol says; 0 if not known
    GuestAddr named_at; // where the symbol of its name is
    GuestAddr code_start, code_end; // the object's code that it is in
    GuestAddr goes_to; // the program's own function for it; 0: none. A tool's comes first
    bool wraps;       // that function may call this one
    bool resolver;    // the entry of an IFUNC resolver; what it returns is the function
    bool return_site;
    bool is_lean_site; // L2 of lean_hot.c
} Hook;

#define HOOKS_MAX (1u << 20)
extern Hook *redirect_hooks; // a reservation: never moves

// Counts removals of hooks. A thread's RedirectThread.known is void if its generation is older.
extern u64 redirect_generation;

typedef struct Activation {
    ToolCall call;
    GuestAddr sp; // where the return address is
    u32 hook;
} Activation;

// What the hot part of a prologue has done before the thread left the cache.
typedef enum Step { STEP_NONE, STEP_REPLACED, STEP_ORIGINAL, STEP_WRAPPED, STEP_RETURNED } Step;

#define KNOWN_SITES 256

typedef struct RedirectThread {
    Step step;
    ToolCall call;           // of the function being replaced
    Activation *activations; // ctx->redirect.count of them
    u64 capacity;
    u64 generation;               // of known[]
    GuestAddr known[KNOWN_SITES]; // return sites that are hooked
} RedirectThread;

static inline GuestAddr *known_slot(RedirectThread *t, GuestAddr pc)
{
    return &t->known[(pc ^ pc >> 8) % KNOWN_SITES];
}

// Whether `pc` is hooked as a return site, as far as the thread knows without a lock.
static inline bool is_known_site(RedirectThread *t, GuestAddr pc)
{
    u64 generation = __atomic_load_n(&redirect_generation, __ATOMIC_ACQUIRE);
    return t->generation == generation && *known_slot(t, pc) == pc;
}

// ---------------------------------------------------------------- hooks.c

// Reserves the table of hooks at once, for a tool that cannot do without hooks. For other tools the
// first hook does so.
void hooks_init(void);
// Makes `pc` the entry of `function`, in the object's code that `mapping` maps. If two rows of the
// table match one address, Tool.alias or the order of rows decides which counts.
void hooks_add_entry(GuestAddr pc, u64 size_bytes, const ToolFunction *function, bool resolver,
                     GuestAddr named_at, const Mapping *mapping);
// False: there is no memory for it.
bool hooks_add_return_site(GuestAddr pc, bool is_lean);
// Makes `pc`, or what the resolver there returns, go on at `target`.
typedef enum HookAdded {
    HOOK_ADDED,
    HOOK_THERE, // it went there before
    HOOK_TAKEN, // it goes to another function, or there is no memory
} HookAdded;
HookAdded hooks_add_jump(GuestAddr pc, u64 size_bytes, GuestAddr target, bool wraps,
                         bool resolver);
void hooks_forget(GuestAddr start, GuestAddr end);
// Forgets the jumps of hooks that lead to [start, end).
void hooks_forget_jumps(GuestAddr start, GuestAddr end);
// Whether the tool has a function for `pc`.
bool hooks_is_tools(GuestAddr pc);

// ---------------------------------------------------------------- wraps.c
// The program's own wrappers and replacements. For each object: its specifications are noted,
// those that fit its name are chosen, then its symbols are compared with them.

void wraps_init(void);
// Chooses the words printed about wrappers: with `verbose` those that take effect, with `trace`
// all.
void wraps_set_words(bool verbose, bool trace);
// Notes the specification that `symbol` is the name of. True if it is a new one.
bool wraps_note(const char *symbol, GuestAddr target);
bool wraps_are_there(void);
// Chooses the specifications that fit the object's name. False: none fits.
bool wraps_choose(const char *soname);
void wraps_apply(const char *name, u64 size_bytes, bool is_resolver, GuestAddr pc);
// Forgets the specifications whose functions were in [start, end). True if there were any.
bool wraps_forget(GuestAddr start, GuestAddr end);

// ---------------------------------------------------------------- calls_hot.c

void call_begin(ThreadCtx *ctx, ToolCall *call, const Hook *hook, GuestAddr return_address);
// The client's function is going to find these arguments.
void call_set_args(ThreadCtx *ctx, const ToolCall *call);
// Appends an activation, for which there is room.
void activation_push(ThreadCtx *ctx, u32 hook, GuestAddr return_address);
// Call the handlers. Handlers that are not hot may call the client, which moves the
// list of activations: they get a call that is not in it.
void call_before(ThreadCtx *ctx, ToolCall *call);
void call_after(ThreadCtx *ctx, ToolCall *call);

// ---------------------------------------------------------------- calls.c
// --trace-malloc. Then no call of a function that allocates or frees is handled in the cache.

void calls_trace(bool traced);
bool calls_is_traced(const ToolFunction *function);
bool calls_is_traced_anywhere(void);
// The call has returned.
void calls_print(const ToolCall *call, u64 result);

// ---------------------------------------------------------------- lean_hot.c

static inline GuestAddr *lean_slot(ThreadCtx *ctx, GuestAddr pc)
{
    return &ctx->lean.known[pc >> 3 & (LEAN_SITES - 1)];
}

void lean_thread_start(ThreadCtx *ctx);
// To be called at the entry of a lean function whose return site is hooked: begins its call, unless
// the call is part of another lean call.
void lean_begin(ThreadCtx *ctx, u32 hook);
// To be called at a return site: ends the thread's lean call if it has returned to `pc`.
void lean_end(ThreadCtx *ctx, GuestAddr pc);
u32 lean_call_before(ThreadCtx *ctx, u32 hook, GuestAddr return_address);

// ---------------------------------------------------------------- known_files.c
// Engine lock held.

// Tells a file's content (by its times and size) and the part of it that is mapped.
typedef struct FileKey {
    u64 dev, inode, size;
    u64 changed_s, changed_ns, modified_s, modified_ns;
    u64 offset, length;
    u64 name; // a sum of the path's characters
} FileKey;

// False: it is no regular file.
bool known_files_key(int fd, const Mapping *mapping, FileKey *ret_key);
// Whether the file is known to have no symbol that the tool or the program wants hooked.
bool known_files_have(const FileKey *key);
void known_files_add(const FileKey *key);

// ---------------------------------------------------------------- names.c

void names_init(void);
// --require-text-symbol: the run ends when an object lacks what it must have.
void names_require(const OptionList *wanted);
// Compares the symbols of an ELF file with the tool's table and the program's specifications, and
// hooks what matches inside [mapping->start, mapping->end). True: there are new specifications
// among them, so that names_match_wraps() has something to do for all other files.
bool names_match_file(int fd, const Mapping *mapping);
void names_match_wraps(int fd, const Mapping *mapping);
// `*` and `?` as in a shell.
bool name_matches(const char *pattern, const char *text);

#endif
