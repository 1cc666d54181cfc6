// SPDX-License-Identifier: MIT
//
// Which request is whose, and those of the core; see request.h.
#include "engine/request/request.h"

#include <string.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/decode/decode.h"
#include "engine/log/log.h"
#include "engine/request/request_internal.h"
#include "engine/toolapi/toolapi.h"
#include "muninn/client.h"

u64 (*request_error_count)(void);
bool (*request_monitor_hook)(ThreadCtx *ctx, const char *command);
bool (*request_call_hook)(ThreadCtx *ctx, GuestAddr function, const u64 *args, unsigned count,
                          u64 *ret_result);
bool (*request_option_hook)(ThreadCtx *ctx, const char *option, char *ret_error,
                            size_t error_size);
void (*request_place_hook)(ThreadCtx *ctx, GuestAddr pc, char ret_text[REQUEST_PLACE_MAX]);

enum { COMMAND_MAX = 1024, ERROR_MAX = 512 };

static bool is_verbose;
static u64 nesting_depth; // 1, or more if the engine itself runs on an engine

void request_init(bool verbose)
{
    is_verbose = verbose;
    nesting_depth = 1 + MUNINN_RUNNING;
}

void request_set_verbose(bool verbose)
{
    is_verbose = verbose;
}

void request_fork_prepare(void)
{
    text_fork_prepare();
    stacks_fork_prepare();
}

void request_fork_done(bool in_child)
{
    stacks_fork_done();
    text_fork_done(in_child);
}

// ------------------------------------------------------------------ handlers

// What a request answers with in the client's memory; the tool hears of it.
static bool write_answer(ThreadCtx *ctx, GuestAddr to, const void *answer, size_t size)
{
    if (!guest_write(to, answer, size))
        return false;
    if (tool->answered)
        tool->answered(ctx, to, size);
    return true;
}

// args[0] is the number; the result is `otherwise` unless there is a better one.
typedef u64 RequestHandler(ThreadCtx *ctx, const u64 args[6], u64 otherwise);

static u64 do_running(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx, (void)args, (void)otherwise;
    return nesting_depth;
}

static u64 do_nothing(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx, (void)args;
    return otherwise;
}

static u64 do_tool(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    u64 result = otherwise;
    return tool->request && tool->request(ctx, args, &result) ? result : otherwise;
}

static u64 do_discard(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx;
    GuestAddr start = args[1], end = start + args[2];
    if (end < start)
        end = ~0ull;
    end = min_u64(end, 1ull << 47);
    if (start < end) {
        lock_acquire(&engine_lock);
        cache_invalidate(start, end);
        lock_release(&engine_lock);
    }
    return otherwise;
}

// Calls a function of the client with the thread's id in front of its arguments. The
// request clobbers no vector register (Q1), but a function does.
static u64 do_client_call(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    const u64 call_args[4] = {(u64)ctx->thread.tid, args[2], args[3], args[4]};
    unsigned count = 1 + (unsigned)(args[0] - 0x1101);
    u64 result = otherwise;
    u8 *kept = pages_map(ctx->xsave_size);
    if (!kept)
        return otherwise;
    memcpy(kept, ctx->xsave, ctx->xsave_size);
    if (!request_call_hook(ctx, args[1], call_args, count, &result))
        result = otherwise;
    memcpy(ctx->xsave, kept, ctx->xsave_size);
    pages_unmap(kept, ctx->xsave_size);
    return result;
}

static u64 do_count_errors(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx, (void)args, (void)otherwise;
    return request_error_count ? request_error_count() : 0;
}

static u64 do_monitor_command(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    char command[COMMAND_MAX];
    (void)otherwise;
    if (!request_monitor_hook || guest_read_string(args[1], command, sizeof(command)) < 0)
        return 1;
    return !request_monitor_hook(ctx, command);
}

static u64 do_option(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    char option[COMMAND_MAX], error[ERROR_MAX] = "nothing can be changed under this tool";
    if (guest_read_string(args[1], option, sizeof(option)) < 0)
        return otherwise;
    if (!(request_option_hook && request_option_hook(ctx, option, error, sizeof(error))))
        log_note("the program asks for %s: %s", option, error);
    return otherwise;
}

static u64 do_print(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    return text_print(ctx, args[1], args[2], false);
}

static u64 do_print_backtrace(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    return text_print(ctx, args[1], args[2], true);
}

static u64 do_stack_register(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx, (void)otherwise;
    return stacks_register(args[1], args[2]);
}

static u64 do_stack_deregister(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx;
    stacks_deregister(args[1]);
    return otherwise;
}

static u64 do_stack_change(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx;
    stacks_change(args[1], args[2], args[3]);
    return otherwise;
}

static u64 do_place(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    char text[REQUEST_PLACE_MAX] = "";
    if (request_place_hook)
        request_place_hook(ctx, args[1], text);
    text[sizeof(text) - 1] = 0;
    write_answer(ctx, args[2], text, strlen(text) + 1);
    return otherwise;
}

// 1: one more wish for silence; -1: one less.
static u64 do_change_disablement(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    if (args[1] == 1 && ctx->relay.errors_disabled < UINT32_MAX)
        ctx->relay.errors_disabled++;
    else if (args[1] == ~0ull && ctx->relay.errors_disabled > 0)
        ctx->relay.errors_disabled--;
    return otherwise;
}

static u64 do_version(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    (void)ctx, (void)args, (void)otherwise;
    return MUNINN_CLIENT_VERSION;
}

// (buffer, size): as snprintf, the name cut to fit and its whole length returned.
static u64 do_tool_name(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    char name[64];
    size_t length = min_u64(strlen(tool->name), sizeof(name) - 1);
    size_t kept = min_u64(length, args[2] ? args[2] - 1 : 0);
    memcpy(name, tool->name, kept);
    name[kept] = 0;
    if (args[2] && !write_answer(ctx, args[1], name, kept + 1))
        return otherwise;
    return length;
}

// ------------------------------------------------------------------ dispatch

static const struct Request {
    u32 number;
    RequestHandler *handler;
} requests[] = {
#define REQUEST(number, name, handler) {number, handler},
#define REQUEST_BASE(a, b, name)
#include "engine/request/requests.def"
#undef REQUEST
#undef REQUEST_BASE
};

static const u32 bases[] = {
#define REQUEST(number, name, handler)
#define REQUEST_BASE(a, b, name) (u32)(a) << 24 | (u32)(b) << 16,
#include "engine/request/requests.def"
#undef REQUEST
#undef REQUEST_BASE
};

static bool is_of_a_known_tool(u64 number)
{
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if ((number & ~0xffffull) == bases[i])
            return true;
    }
    return false;
}

static void note_unknown(u64 number)
{
    static u64 noted[32];
    if (!is_verbose || is_of_a_known_tool(number))
        return;
    for (size_t i = 0; i < ARRAY_LEN(noted); i++) {
        u64 none = 0;
        if (__atomic_compare_exchange_n(&noted[i], &none, number + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            log_note("client request %lx is unknown: the program gets its default", number);
            return;
        }
        if (none == number + 1)
            return;
    }
}

static u64 answer(ThreadCtx *ctx, const u64 args[6], u64 otherwise)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].number == args[0])
            return requests[i].handler(ctx, args, otherwise);
    }
    u64 result = otherwise;
    if (tool->request && tool->request(ctx, args, &result))
        return result;
    note_unknown(args[0]);
    return otherwise;
}

void request_run(ThreadCtx *ctx)
{
    u64 args[6];
    RequestKind kind = ctx->gateway.exit_link;
    if (kind == REQUEST_CALL_ORIGINAL)
        return; // the block has pushed the return address and set pc
    GuestAddr next = ctx->pc + DECODE_BYTES_MAX;
    if (kind == REQUEST_CALL && guest_read(ctx->gpr[RAX], args, sizeof(args)))
        ctx->gpr[RDX] = answer(ctx, args, ctx->gpr[RDX]);
    else if (kind == REQUEST_GET_ORIGINAL)
        ctx->gpr[RAX] = ctx->redirect.wrapped_original;
    ctx->pc = next;
}
