// SPDX-License-Identifier: MIT
//
// The engine's start: from an ordinary process to a client on the synthetic
// CPU; and its end.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/calltags/calltags.h"
#include "engine/descriptors/descriptors.h"
#include "engine/fdtrack/fdtrack.h"
#include "engine/gateway/gateway.h"
#include "engine/limits/limits.h"
#include "engine/loader/loader.h"
#include "engine/log/log.h"
#include "engine/procview/procview.h"
#include "engine/redirect/redirect.h"
#include "engine/relay/relay.h"
#include "engine/request/request.h"
#include "engine/run/run.h"
#include "engine/seccomp/seccomp.h"
#include "engine/signal/signal.h"
#include "engine/perform/perform.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"
#include "engine/translate/translate.h"
#include "engine/uring/uring.h"
#include "launch/launch.h"
#include "launch/options.h"

enum { FLAGS_AT_START = 0x202 }; // interrupts on, as the kernel starts a process
enum { EXIT_CANNOT_RUN = 126 };

static Options options;

static bool on_thread_start(ThreadCtx *ctx)
{
    if (calltags_wanted && !calltags_thread_start(ctx))
        return false;
    if (callstack_wanted && !callstack_init(&ctx->callstack, 0, ~0ull))
        return false;
    if (!redirect_thread_start(ctx))
        return false;
    relay_thread_start(ctx);
    if (tool->thread_start)
        tool->thread_start(ctx);
    return true;
}

static void on_thread_end(ThreadCtx *ctx)
{
    stats_thread_end(ctx);
    redirect_thread_ending(ctx);
    if (tool->thread_end)
        tool->thread_end(ctx);
    if (ctx->callstack.bottom)
        callstack_free(&ctx->callstack);
    calltags_thread_end(ctx);
    redirect_thread_end(ctx);
    relay_thread_end(ctx);
    follow_thread_end();
}

static void on_fork_soon(ThreadCtx *ctx)
{
    if (tool->fork_soon)
        tool->fork_soon(ctx);
}

static void on_fork_prepare(ThreadCtx *ctx)
{
    (void)ctx;
    descriptors_fork_prepare();
    callstack_fork_prepare();
    calltags_fork_prepare();
    request_fork_prepare();
    fdtrack_fork_prepare();
    uring_fork_prepare();
    if (tool->fork_prepare)
        tool->fork_prepare();
    relay_fork_prepare(); // last: what precedes it is the child's too
}

static void on_fork_parent(ThreadCtx *ctx)
{
    (void)ctx;
    if (tool->fork_parent)
        tool->fork_parent();
    uring_fork_done();
    fdtrack_fork_done();
    request_fork_done(false);
    calltags_fork_done();
    callstack_fork_done(false);
    descriptors_fork_parent();
}

static u32 finished; // atomic: the process has been reported on

static bool is_fork_child;

static void on_fork_child(ThreadCtx *ctx)
{
    uring_fork_done();
    fdtrack_fork_done();
    request_fork_done(true);
    calltags_fork_done();
    callstack_fork_done(true);
    descriptors_fork_child();
    relay_fork_child();
    is_fork_child = true;
    finished = 0;
    signal_ending_forget(ctx);
    if (tool->fork_child)
        tool->fork_child(ctx);
    aspace_after_fork(); // what is not there any more is told, by what was not there either
}

// A word of a client stack, to recognise one that the client has moved.
static bool peek(GuestAddr address, u64 *ret_word)
{
    return guest_read(address, ret_word, sizeof(*ret_word));
}

static void on_mapped(const Mapping *mapping)
{
    relay_code_mapped(mapping);
    if (tool->mapped)
        tool->mapped(mapping->start, mapping->end, mapping->prot);
}

// --keep-debuginfo=yes: code of files gets a number when it goes, so that stacks on which it was
// keep its names, whatever is loaded there later. 0: this is no such code. Engine lock held.
static u32 number_unloading(GuestAddr start, GuestAddr end)
{
    static u32 count;

    if (!options.keep_debuginfo || count == CONTEXT_UNLOADINGS_MAX)
        return 0;
    const Mapping *mapping = aspace_find(start);
    if (!mapping) {
        mapping = aspace_next(NULL);
        while (mapping && mapping->end <= start)
            mapping = aspace_next(mapping);
    }
    while (mapping && mapping->start < end && !(mapping->prot & PROT_EXEC && mapping->inode))
        mapping = aspace_next(mapping);
    if (!mapping || mapping->start >= end)
        return 0;
    context_mark_unloaded(start, end, ++count);
    if (calltags_wanted)
        calltags_forget_contexts();
    return count;
}

static void on_unmapped(GuestAddr start, GuestAddr end)
{
    redirect_unmapped(start, end);
    relay_unmapped(start, end, relay_is_on() ? number_unloading(start, end) : 0);
    if (callstack_wanted)
        callstack_forget_range(start, end);
    if (calltags_wanted)
        calltags_unmapped(start, end);
    if (tool->unmapped)
        tool->unmapped(start, end);
}

static void watch_memory(void)
{
    aspace_unmapped_hook = on_unmapped;
    aspace_moved_hook = tool->moved;
    if (tool->mapped || relay_is_on())
        aspace_mapped_hook = on_mapped;
}

static void finish(ThreadCtx *ctx)
{
    if (__atomic_exchange_n(&finished, 1, __ATOMIC_SEQ_CST))
        return;
    request_text_flush(ctx);
    relay_client_ended(ctx);
    fdtrack_finish(ctx);
    if (tool->finish && !relay_is_lost()) // nobody would read it, and it would look complete
        tool->finish();
    if (options.stats)
        stats_print();
}

static struct {
    int argc;
    char **argv;
} client_words; // its command line

// A tool that makes no findings has no monitor, which would cost every process some milliseconds:
// one is started for this death alone.
static bool wants_monitor_for_death(const siginfo_t *info)
{
    bool is_quiet = options.verbosity < 0 && info->si_code <= 0; // then only faults are told
    bool is_silent = options.child_silent_after_fork && is_fork_child;

    // By SIGKILL ends a thread that has given everything back and may make no calls any more.
    return tool->needs & TOOL_TELLS_DEATH && !relay_is_on() && !is_quiet && !is_silent &&
           info->si_signo != SIGKILL;
}

static void must_hold(const char *breach)
{
    if (breach)
        panic_at(__FILE__, __LINE__, breach);
}

// --stress=validate. In a vfork's child the others live on in the same memory.
static void validate_all(ThreadCtx *ctx)
{
    bool is_shared = ctx->thread.vfork_depth > 0 || ctx->live->is_process;
    bool is_alone = !is_shared && ctx_is_only(ctx);
    bool is_confined = ctx->seccomp.filter || ctx->seccomp.strict; // may not open files

    lock_acquire(&engine_lock);
    must_hold(cache_validate());
    must_hold(aspace_validate(is_alone && !is_confined));
    lock_release(&engine_lock);
    if (ctx->callstack.bottom)
        callstack_validate(&ctx->callstack);
    if (tool->validate)
        tool->validate(ctx, is_alone);
}

// What the client has ended with: known to whoever cuts short what is left to do.
static struct {
    int status;
    int signal; // 0: it has exited with that status
} client_end;

// In a signal handler, on any thread: the user does not want to wait.
static _Noreturn void cut_short(int sig)
{
    int status = options.error_exitcode ? options.error_exitcode : client_end.status;

    log_alarm("signal %d ends the process before its report is complete", sig);
    if (client_end.signal)
        signal_end_now(client_end.signal);
    for (;;)
        raw_syscall1(SYS_exit_group, (u64)status);
}

// The client is over, though its process is not: from here on its other threads do nothing. False:
// some of them have not come to a halt.
static bool begin_end(ThreadCtx *ctx, int status, int signal)
{
    client_end.status = status;
    client_end.signal = signal;
    signal_ending_begin(ctx, cut_short);
    return ctx_is_only(ctx) || thread_stop_others_for_good(ctx);
}

static int on_process_end(ThreadCtx *ctx, int status)
{
    bool takes_long = tool->exiting || relay_is_on();
    bool is_quiet = takes_long && begin_end(ctx, status, 0);
    if (tool->exiting && is_quiet && !__atomic_load_n(&finished, __ATOMIC_SEQ_CST))
        tool->exiting(ctx);
    if (run_validate_hook)
        run_validate_hook(ctx);
    finish(ctx);
    return relay_end(ctx, status, 0);
}

static void on_process_dying(ThreadCtx *ctx, const siginfo_t *info)
{
    process_end_claim(ctx);
    if (wants_monitor_for_death(info))
        relay_start_late(&options, client_words.argc, client_words.argv);
    redirect_tell_death(ctx, info->si_signo);
    // Before faults are blocked: the stack is read to where it ends.
    relay_fatal_signal(ctx, info, tool_context(ctx, ctx->pc));
    if (tool->exiting || relay_is_on())
        begin_end(ctx, 0, info->si_signo);
    finish(ctx);
    relay_end(ctx, 0, info->si_signo);
}

static bool reports_death(void)
{
    return tool->finish || options.stats || relay_is_on() || fdtrack_mode != TRACK_FDS_NO ||
           tool->needs & TOOL_TELLS_DEATH;
}

// A file's name is the client's, who may go elsewhere.
static char *copy_of_word(const char *option)
{
    static const char suppressions[] = "--suppressions=";
    size_t prefix = sizeof(suppressions) - 1;
    char *copy = NULL, *here = NULL;

    if (strncmp(option, suppressions, prefix) == 0 && option[prefix] != '/') {
        here = getcwd(NULL, 0);
        if (here && asprintf(&copy, "%s%s/%s", suppressions, here, option + prefix) < 0)
            copy = NULL;
        free(here);
        return copy;
    }
    return strdup(option);
}

static void translate_all_anew(void)
{
    lock_acquire(&engine_lock);
    cache_invalidate(0, ~0ull);
    lock_release(&engine_lock);
}

// From a client request, or from `muninn ctl`. Several threads may come at once; those that read
// the options meanwhile see the old value or the new one.
static bool on_option(ThreadCtx *ctx, const char *option, char *ret_error, size_t error_size)
{
    static Lock lock;
    bool is_kept = false;
    u32 traced = options.trace;

    lock_acquire(&lock);
    char *word = copy_of_word(option);
    int error = word ? options_change(&options, word, &is_kept) : -ENOMEM;
    if (error)
        snprintf(ret_error, error_size, "%s", word ? options.error : "no memory");
    if (!error) {
        trace_init(options.trace, options.verbosity > 0);
        if ((traced ^ options.trace) & TRACE_CALLS)
            translate_all_anew(); // calls are traced by code in the blocks
        request_set_verbose(options.verbosity > 0);
        redirect_options_changed(&options);
        context_tree_merge((u32)options.merge_recursive_frames);
        signal_reports_death = reports_death();
        if (tool->option_changed)
            tool->option_changed(&options);
        relay_option(ctx, &options, word);
    }
    if (!is_kept || error)
        free(word);
    lock_release(&lock);
    return !error;
}

static void on_exec(ThreadCtx *ctx)
{
    request_text_flush(ctx);
    relay_exec(ctx, "");
}

// Tracked descriptors are findings, the one way a tool that makes none has to make some.
static void report_descriptor(ThreadCtx *ctx, const FdTrackEvent *event)
{
    static const u32 kinds[] = {
        [FD_TRACK_BAD_CLOSE] = KIND_FD_BAD_CLOSE,
        [FD_TRACK_BAD_USE] = KIND_FD_BAD_USE,
        [FD_TRACK_NOT_CLOSED] = KIND_FD_NOT_CLOSED,
    };
    if (event->kind == FD_TRACK_SUMMARY || event->inherited) {
        // What the parent has left open is no error of this program's.
        relay_note(ctx, event->text);
        if (event->inherited) {
            relay_note(ctx, "   <inherited from parent>");
            relay_note(ctx, "");
        }
        return;
    }
    RelayPart parts[2] = {
        {.kind = PART_FD_CLOSED, .context = event->contexts[1]},
        {.kind = PART_FD_OPENED, .context = event->contexts[2]},
    };
    bool is_open = event->kind == FD_TRACK_NOT_CLOSED;
    relay_finding(ctx, &(RelayFinding){
        .kind = kinds[event->kind],
        .descriptor = {
            .fd = event->fd,
            .socket = event->socket,
            .file = event->file,
            .path = event->path,
            .call = event->call,
        },
        .context = event->contexts[0],
        .part_count = !is_open && event->contexts[1] ? 2 : 0,
        .parts = parts,
        .key = (u64)(u32)event->fd,
    });
}

static const ThreadHooks main_hooks = {
    .create = relay_thread_create,
    .start = on_thread_start,
    .end = on_thread_end,
    .fork_soon = on_fork_soon,
    .fork_prepare = on_fork_prepare,
    .fork_parent = on_fork_parent,
    .fork_child = on_fork_child,
    .vfork_parent = relay_vfork_parent,
    .exec = on_exec,
    .exec_failed = relay_exec_failed,
    .process_end = on_process_end,
};

// True when the user asks for what only the monitor writes.
static bool wants_report(void)
{
    return options.track_fds != TRACK_FDS_NO || options.xml || options.json_file ||
           options.sarif_file || options.progress_interval_s;
}

static int parse(int argc, char **argv)
{
    options_init(&options);
    int program = options_parse(argc, argv, &options);
    if (program < 0 || program >= argc || !options.exe) {
        log_note("muninn-engine is started by muninn, not by hand");
        _exit(1);
    }
    if (!tool_select(&options)) {
        log_note("--tool=%s: there is no such tool", options.tool);
        _exit(1);
    }
    return program;
}

static const SignalKicks kicks = {relay_poll, relay_elapsed_ns};

static void read_inject_rules(void)
{
    char error[256];

    inject_init(options.inject.count, options.inject.items, error, sizeof(error));
    if (error[0])
        log_refuse("--inject: %s", error);
}

int main(int argc, char **argv, char **envp)
{
    u64 room = limits_init();
    int program = parse(argc, argv);
    if (!descriptors_open_log(&options, log_init))
        return EXIT_CANNOT_RUN;
    client_words.argc = argc - program;
    client_words.argv = argv + program;
    if (tool->needs & TOOL_NEEDS_MONITOR || wants_report())
        relay_start(&options, client_words.argc, client_words.argv);
    environment_restore(envp);
    follow_init(&options);

    stats_init();
    gateway_init(run_light);
    aspace_init();
    u64 cache_size = limits_cache_size(options.cache_size_bytes, room);
    cache_init(options.stress & STRESS_TINY_CACHE ? 0 : cache_size, translate_code_room(),
               !(options.stress & STRESS_NO_LINK));
    translate_init(options.stress & STRESS_TINY_BLOCKS ? 2 : 0, options.stress & STRESS_ENTRIES);
    calltags_wanted = tool->needs & TOOL_NEEDS_CALLTAGS;
    if (calltags_wanted && !calltags_init(tool->shadow_offset))
        log_refuse("the addresses for the tags of calls are taken, or the limit on address space "
                   "or data (ulimit -v, -d) is too small for them, or the kernel lends no more "
                   "memory than there is (vm.overcommit_memory is 2)");
    callstack_wanted = tool->needs & TOOL_NEEDS_CALLSTACK ||
                       (options.track_fds != TRACK_FDS_NO && !calltags_wanted);
    fdtrack_init(options.track_fds);
    fdtrack_numbers = options.modify_fds;
    request_init(options.verbosity > 0);
    request_option_hook = on_option;
    request_call_hook = tool_call_client;
    if (relay_is_on()) {
        fdtrack_report = report_descriptor;
        request_text_hook = relay_client_text;
        request_error_count = relay_error_count;
        request_monitor_hook = relay_run_command;
        request_place_hook = relay_place;
        signal_kicks = &kicks;
    }
    aspace_lowest = (GuestAddr)options.aspace_minaddr;
    loader_stack_bytes = options.main_stack_bytes;
    aspace_stack_is_fixed = options.main_stack_bytes != 0;
    context_tree_merge((u32)options.merge_recursive_frames);
    redirect_init(&options);
    if (tool->prepare)
        tool->prepare(&options);
    watch_memory();
    read_inject_rules();
    trace_init(options.trace, options.verbosity > 0);
    signal_stress = options.stress & STRESS_SIGNALS;
    run_validate_hook = options.stress & STRESS_VALIDATE ? validate_all : NULL;
    signal_reports_death = reports_death();
    signal_init();
    crash_init();
    exec_own_path_hook = loader_exe_path;
    exec_filters_hook = seccomp_install_for_exec;
    thread_run_hook = run_thread;
    process_dying_hook = on_process_dying;
    thread_add_hooks(&main_hooks);
    callstack_set_peek(peek);

    ThreadCtx *ctx = &thread_ctx;
    if (!thread_init_main(ctx))
        log_refuse("no memory for the first thread");
    relay_accept_kicks();
    if (options.seccomp_fd >= 0 && !seccomp_adopt(ctx, options.seccomp_fd))
        log_refuse("the program's seccomp filters could not be taken over");
    if (!loader_start(options.exe, argc - program, argv + program, envp, &ctx->pc, &ctx->gpr[RSP]))
        return EXIT_CANNOT_RUN;
    procview_init(ctx->gpr[RSP]);
    ctx->flags = FLAGS_AT_START;
    if (tool->start)
        tool->start();
    on_thread_start(ctx);
    relay_await_ready();
    run_thread(ctx);
}
