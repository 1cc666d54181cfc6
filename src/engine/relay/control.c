// SPDX-License-Identifier: MIT
//
// Commands, the engine's part. The monitor leaves a request on the wire and interrupts a
// thread, which comes by here at its next safe point; or the client asks by
// a client request. Commands of the engine's own are in a table, others are the
// tool's; what neither knows the monitor does, for the client.
//
// What must stay true
//   K1  A thread's stack is read by that thread alone: a request for all threads is
//       answered by each for itself.
//   K2  The child of a vfork answers nothing: the request is its parent's.
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/raw_syscall.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "engine/relay/relay_internal.h"
#include "engine/request/request.h"
#include "engine/syscall/syscall.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"

enum {
    PIECE_BYTES = 16 * 1024, // of an answer, in one record
    LINE_BYTES = 1024,
    STATUS_STOPPED = 143,    // of a program ended by `stop`: as if by SIGTERM
};

// -------------------------------------------------------------------- answers

// The client's commands are answered in its report, line by line.
static void answer_in_report(ThreadCtx *ctx, const char *text)
{
    char line[LINE_BYTES];

    while (*text) {
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)min_u64(length, LINE_BYTES - 1), text);
        relay_note(ctx, line); // it was asked for, whatever -q says
        text += length + (text[length] == '\n');
    }
}

void relay_answer(ThreadCtx *ctx, const char *text)
{
    WireProducer *producer = relay_producer(ctx);
    size_t left = strlen(text);

    if (ctx->relay.answering == 0) {
        answer_in_report(ctx, text);
        return;
    }
    while (producer && left > 0) {
        // Copied, since a piece in a record ends in a zero byte.
        char piece[PIECE_BYTES + 1];
        size_t size = min_u64(left, PIECE_BYTES);
        memcpy(piece, text, size);
        piece[size] = '\0';
        wire_put_command_text(producer, &(Wire_command_text){ctx->relay.answering, {piece, size}});
        text += size;
        left -= size;
    }
}

void relay_answer_format(ThreadCtx *ctx, const char *format, ...)
{
    char text[4 * LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    relay_answer(ctx, text);
}

static void answer_done(ThreadCtx *ctx, WireCommandStatus status)
{
    WireProducer *producer = relay_producer(ctx);

    if (!producer || ctx->relay.answering == 0)
        return;
    wire_put_command_done(producer, &(Wire_command_done){ctx->relay.answering, status});
    wire_ring_bell(producer);
}

// ------------------------------------------------------------------- commands

static WireCommandStatus do_stop(ThreadCtx *ctx, char *arguments)
{
    char *end;
    long status = strtol(arguments, &end, 10);

    if (*end || status < 0 || status > 255) {
        relay_answer(ctx, "stop: the exit status is a number from 0 to 255\n");
        return COMMAND_FAILED;
    }
    relay_answer_format(ctx, "the program is stopped\n");
    answer_done(ctx, COMMAND_OK);
    process_exit(ctx, end == arguments ? STATUS_STOPPED : (int)status);
}

static void describe_open(ThreadCtx *ctx, int directory, int fd)
{
    char name[16], target[512];

    if (descriptor_is_hidden(fd) || fd == directory)
        return;
    snprintf(name, sizeof(name), "%d", fd);
    ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);
    if (n < 0)
        return;
    target[n] = '\0';
    relay_answer_format(ctx, "Open file descriptor %d: %s\n", fd, target);
}

static WireCommandStatus do_open_fds(ThreadCtx *ctx, char *arguments)
{
    char entries[4096];
    i64 n;
    int directory = open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arguments;
    if (directory < 0) {
        relay_answer(ctx, "open_fds: /proc/thread-self/fd cannot be read\n");
        return COMMAND_FAILED;
    }
    while ((n = raw_syscall3(SYS_getdents64, (u64)directory, (u64)entries, sizeof(entries))) > 0) {
        for (i64 at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            if (entry->d_name[0] != '.')
                describe_open(ctx, directory, atoi(entry->d_name));
            at += entry->d_reclen;
        }
    }
    close(directory);
    return COMMAND_OK;
}

static WireCommandStatus do_clo(ThreadCtx *ctx, char *arguments)
{
    WireCommandStatus status = COMMAND_OK;
    char error[LINE_BYTES] = "nothing can be changed in this run";

    if (!*arguments)
        relay_answer(ctx, "muninn --help-dyn-options lists the options that can be changed\n");
    for (char *word; (word = strsep(&arguments, " \t"));) {
        if (!*word)
            continue;
        bool ok = request_option_hook && request_option_hook(ctx, word, error, sizeof(error));
        if (ok)
            relay_answer_format(ctx, "changed: %s\n", word);
        else
            relay_answer_format(ctx, "clo: %s\n", error);
        status = ok ? status : COMMAND_FAILED;
    }
    return status;
}

static WireCommandStatus do_tool_help(ThreadCtx *ctx, char *arguments)
{
    (void)arguments;
    if (tool->command_help)
        relay_answer(ctx, tool->command_help);
    return COMMAND_OK;
}

static const struct Command {
    const char *name;
    WireCommandStatus (*run)(ThreadCtx *ctx, char *arguments);
} commands[] = {
    {"stop", do_stop},
    {"open_fds", do_open_fds},
    {"tool_help", do_tool_help},
    {"clo", do_clo},
};

// "v.info open_fds" is the incumbent's way to say open_fds.
static char *without_prefix(char *command)
{
    static const char *const prefixes[] = {"v.info ", "v."};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(command, prefixes[i], length) == 0)
            return command + length + strspn(command + length, " \t");
    }
    return command;
}

static WireCommandStatus run_command(ThreadCtx *ctx, char *command)
{
    command += strspn(command, " \t");
    char *plain = without_prefix(command);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        size_t length = strlen(commands[i].name);
        if (strncmp(plain, commands[i].name, length) == 0 &&
            (plain[length] == '\0' || plain[length] == ' ')) {
            plain += length;
            return commands[i].run(ctx, plain + strspn(plain, " \t"));
        }
    }
    return tool->command && tool->command(ctx, command) ? COMMAND_OK : COMMAND_UNKNOWN;
}

// ------------------------------------------------------------------- requests

// K1.
static void answer_with_stack(ThreadCtx *ctx, u32 sequence)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    WireProducer *producer = relay_producer(ctx);
    u32 context = calltags_thread_context(ctx, ctx->pc);
    size_t count = context ? context_frames(context, frames, WIRE_FRAMES_MAX) : 0;
    const SyscallRow *row = ctx->relay.sleeps_in ? syscall_row(ctx->relay.sleeps_in - 1) : NULL;
    const char *call = row ? row->name : ctx->relay.sleeps_in ? "unknown" : "";

    if (!producer)
        return;
    if (count == 0)
        frames[count++] = ctx->pc;
    wire_put_thread_stack(producer, &(Wire_thread_stack){
        .sequence = sequence,
        .number = ctx->relay.number,
        .tid = (u64)raw_syscall0(SYS_gettid),
        .call = {call, strlen(call)},
        .pcs = {frames, min_u64(count, WIRE_FRAMES_MAX)},
    });
    wire_ring_bell(producer);
}

void relay_poll(ThreadCtx *ctx)
{
    char command[WIRE_REQUEST_BYTES];
    bool for_all;

    if (!relay.shared || relay.life < 0 || ctx->thread.vfork_depth > 0 || ctx->relay.answering)
        return;
    relay_say_alarms();
    u32 sequence = wire_request_take(relay.shared, ctx->relay.request_seen, command, &for_all);
    if (sequence == 0)
        return;
    ctx->relay.request_seen = sequence;
    if (for_all) {
        answer_with_stack(ctx, sequence);
        return;
    }
    ctx->relay.answering = sequence;
    answer_done(ctx, run_command(ctx, command));
    ctx->relay.answering = 0;
}

bool relay_run_command(ThreadCtx *ctx, const char *command)
{
    char copy[WIRE_REQUEST_BYTES];
    WireProducer *producer = relay_producer(ctx);

    request_text_flush(ctx);
    snprintf(copy, sizeof(copy), "%s", command);
    WireCommandStatus status = run_command(ctx, copy);
    if (status != COMMAND_UNKNOWN)
        return true;
    if (!producer)
        return false;
    wire_put_command(producer, &(Wire_command){{command, strnlen(command, WIRE_REQUEST_BYTES)}});
    wire_sync(producer);
    return !relay_check() &&
           __atomic_load_n(&producer->ring->command_status, __ATOMIC_ACQUIRE) != COMMAND_UNKNOWN;
}

void relay_option(ThreadCtx *ctx, const Options *options, const char *word)
{
    WireProducer *producer = relay_producer(ctx);

    relay.is_silent = options->child_silent_after_fork && !options->xml;
    if (!producer)
        return;
    wire_put_option(producer, &(Wire_option){{word, strlen(word)}});
    wire_sync(producer);
    relay_check();
}

// The ring with the answer, or NULL.
static const WireRing *ask_place(ThreadCtx *ctx, GuestAddr pc)
{
    WireProducer *producer = relay_producer(ctx);

    if (!producer)
        return NULL;
    wire_put_place(producer, &(Wire_place){pc});
    wire_sync(producer);
    return relay_check() ? NULL : producer->ring;
}

void relay_place(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_PLACE_BYTES])
{
    const WireRing *ring = ask_place(ctx, pc);
    snprintf(ret_text, WIRE_PLACE_BYTES, "%.*s", WIRE_PLACE_BYTES - 1, ring ? ring->place : "");
}

void relay_name(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_NAME_BYTES])
{
    const WireRing *ring = ask_place(ctx, pc);
    snprintf(ret_text, WIRE_NAME_BYTES, "%.*s", WIRE_NAME_BYTES - 1, ring ? ring->name : "");
}

// ----------------------------------------------------------------------- time

// The counter's pace is that of the whole run so far.
u64 relay_elapsed_ns(u64 stamp)
{
    struct timespec now;

    if (!relay.shared)
        return 0;
    raw_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (u64)&now);
    u64 now_stamp = wire_stamp();
    u64 now_ns = (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec;
    u64 ticks = now_stamp - relay.shared->header.start_stamp;
    u64 ns = now_ns - relay.shared->header.start_ns;
    if (ticks == 0 || now_stamp < stamp)
        return 0;
    return (u64)((unsigned __int128)(now_stamp - stamp) * ns / ticks);
}
