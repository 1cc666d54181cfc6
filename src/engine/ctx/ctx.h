// SPDX-License-Identifier: MIT
//
// The context of one client thread: the client's registers, and beside them one struct for each
// part of the engine that keeps something in a thread. This header only lists the structs. Each is
// defined by its owner, in the header FOLDER_state.h of the owner's folder; these headers include
// nothing of the engine, which is why the lowest folder may put them together.
//
// Emitted code addresses the calling thread's context by displacements from fs (CTX). The order of
// the structs is free. Within some of them it is not: their headers say so.
#ifndef MUNINN_ENGINE_CTX_CTX_H
#define MUNINN_ENGINE_CTX_CTX_H

#include <stddef.h>

#include "base/registers_x64.h"
#include "base/types.h"
#include "engine/cache/cache_state.h"
#include "engine/callstack/callstack_state.h"
#include "engine/calltags/calltags_state.h"
#include "engine/gateway/gateway_state.h"
#include "engine/limits/limits_state.h"
#include "engine/redirect/redirect_state.h"
#include "engine/relay/relay_state.h"
#include "engine/run/run_state.h"
#include "engine/seccomp/seccomp_state.h"
#include "engine/signal/signal_state.h"
#include "engine/thread/thread_state.h"
#include "engine/toolapi/toolapi_state.h"
#include "engine/translate/translate_state.h"

// A thread's place in the list of live ones. It stands beside the ThreadCtx and not in it, because
// a vfork puts its parent's ThreadCtx back as it was before.
typedef struct LiveThread {
    struct LiveThread *next;
    struct ThreadCtx *ctx;
    bool is_process; // runs in this memory, but is not a thread of this process
} LiveThread;

#define FLAG_TF 0x100u
#define FLAG_DF 0x400u
#define FLAG_AC 0x40000u

typedef struct ThreadCtx {
    // The client's state belongs to no folder. It is complete while the thread is outside the
    // cache (R2 in run/run.h).
    u64 gpr[GPR_COUNT];
    GuestAddr pc;
    u64 flags;
    u64 client_fs; // the bases of fs and gs that the client has set
    u64 client_gs;
    u64 engine_gs; // the base of %gs in the cache, except in a few expansions that change it
    u8 *xsave;     // vector and x87 state, standard XSAVE format, 64-byte aligned
    u64 xsave_size;

    TranslateState translate;
    GatewayState gateway;
    CallStack callstack; // kept if callstack_wanted
    CalltagsState calltags;
    RedirectState redirect;
    LeanState lean;
    DispatchState dispatch;
    CacheState cache;
    SignalState signal;
    ThreadState thread;
    SeccompState seccomp;
    LimitsState limits;
    ToolState tool;
    RelayState relay;
    RunStats stats;
    LiveThread *live;
} ThreadCtx;

extern __thread ThreadCtx thread_ctx;

// For emitted code: the displacement from fs of a field of the calling thread's ThreadCtx. It is
// the same in all threads, since thread_ctx is a thread-local variable of the executable.
extern i32 ctx_displacement;
#define CTX(field) (ctx_displacement + (i32)offsetof(ThreadCtx, field))
#define CTX_GPR(r) (CTX(gpr) + 8 * (i32)(r))
#define CTX_SPILL(r) (CTX(translate.spill) + 8 * (i32)(r))

// To be called before any code is emitted.
void ctx_init(void);

// ------------------------------------------------------------- live threads

// Calls fn for every live thread, under the list's lock.
void ctx_for_each(void (*fn)(ThreadCtx *ctx, void *data), void *data);

// Whether the calling thread is the only one of its process.
bool ctx_is_only(const ThreadCtx *ctx);

// --- for thread/, which says who lives
void ctx_live_add(LiveThread *thread);
// To be called when a thread is about to end. True if all other threads have ended or have made
// this call too: then the process ends with this thread.
bool ctx_live_begin_end(LiveThread *thread);
void ctx_live_remove(LiveThread *thread);
bool ctx_live_remove_if_there(LiveThread *thread); // true: it was in the list
void ctx_live_lock(void);                          // around a fork
void ctx_live_unlock(void);
void ctx_live_keep_only(LiveThread *thread); // in the fork's child

#endif
