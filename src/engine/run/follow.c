// SPDX-License-Identifier: MIT
//
// --trace-children: an execve() of the client becomes an execve() of the engine
// on the new program. What cannot be followed for a good reason
// (an errno) is left to the kernel to refuse, so the client sees the kernel's
// own answer.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "engine/relay/relay.h"
#include "engine/run/run.h"
#include "engine/seccomp/seccomp.h"
#include "engine/thread/thread.h"
#include "launch/launch.h"
#include "launch/options.h"

static const Options *run_options;
static char engine_path[PATH_MAX];

// Everything a rewritten request points to. Kept per thread and used again: in
// the child of a vfork it cannot be freed, since the exec never returns.
typedef struct FollowArea {
    Program program;
    Options options;
    char path[PATH_MAX];
    char *option_argv[OPTIONS_ARGV_MAX];
    u64 size;       // of the whole mapping
    char *words[];  // argv, then the texts of the hidden environment and of the options
} FollowArea;

static __thread FollowArea *area;

static bool make_area(size_t word_bytes)
{
    u64 size = PAGE_UP(sizeof(FollowArea) + word_bytes);
    if (area && area->size >= size)
        return true;
    follow_thread_end();
    area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) {
        area = NULL;
        return false;
    }
    area->size = size;
    return true;
}

void follow_thread_end(void)
{
    if (area)
        munmap(area, area->size);
    area = NULL;
}

static size_t count_words(char **words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

// The path as this process can open it.
static bool resolve(const ExecRequest *r, char path[PATH_MAX])
{
    size_t n;
    if (r->path[0] == '/' || r->dirfd == AT_FDCWD)
        n = text_format(path, PATH_MAX, "%s", r->path);
    else if (r->path[0])
        n = text_format(path, PATH_MAX, "/proc/self/fd/%d/%s", r->dirfd, r->path);
    else
        n = text_format(path, PATH_MAX, "/proc/self/fd/%d", r->dirfd);
    return n < PATH_MAX;
}

// What we cannot run the kernel may: a program that cannot be read, a 32-bit one.
static void note_unfollowed(const Program *program)
{
    if ((program->is_unreadable || program->is_foreign) && run_options->verbosity >= 0)
        log_note("%s; it is not followed", program->problem);
}

// The client's filters hold for the new program as well.
static i64 hand_over_filters(const ThreadCtx *ctx, ExecRequest *r, Options *options)
{
    if (!ctx->seccomp.filter)
        return 0;
    options->seccomp_fd = r->filters_fd = seccomp_across_exec(ctx);
    return r->filters_fd < 0 ? r->filters_fd : 0;
}

static i64 follow(ThreadCtx *ctx, ExecRequest *r)
{
    descriptors_after_failed_exec();
    size_t argc = count_words(r->argv);
    size_t hidden = environment_hidden_size(r->envp);
    size_t words_max = argc + OPTIONS_ARGV_MAX + ARRAY_LEN(area->program.words) + 4;
    // The paths of the new program come on top of what the options are now.
    size_t option_bytes = options_text_size(run_options) + 4 * PATH_MAX;
    if (!make_area(words_max * sizeof(char *) + hidden + option_bytes))
        return -ENOMEM;
    FollowArea *a = area;
    if (!resolve(r, a->path))
        return 0; // the kernel says why
    if (program_probe(a->path, &a->program) != 0) {
        note_unfollowed(&a->program);
        return 0;
    }
    if (options_child_is_skipped(run_options, a->path) ||
        options_child_is_skipped_by_arg(run_options, r->argv))
        return 0;
    if (a->program.lost && run_options->verbosity >= 0)
        log_note("%s: runs without its set-user-ID or file capabilities", a->path);

    a->options = *run_options;
    a->options.seccomp_fd = -1;
    a->options.under_reaper |= relay_adopts_orphans;
    a->options.guard = relay_guard();
    a->options.exe = a->program.exe;
    a->options.execfn = a->program.word_count ? a->program.words[0] : a->path;
    a->options.script = a->program.word_count ? a->path : NULL;
    int log_fd_across = descriptors_log_across_exec(ctx->thread.vfork_depth > 0);
    if (log_fd_across >= 0)
        a->options.log_fd = log_fd_across;
    i64 refused = hand_over_filters(ctx, r, &a->options);
    if (refused < 0)
        return refused;
    char *option_text = (char *)(a->words + words_max) + hidden;
    int option_count = options_to_argv(&a->options, option_text, option_bytes,
                                       a->option_argv, OPTIONS_ARGV_MAX);
    if (option_count < 0) {
        if (r->filters_fd >= 0)
            close(r->filters_fd);
        return -E2BIG;
    }

    size_t n = 0;
    a->words[n++] = (char *)"muninn-engine";
    for (int i = 0; i < option_count; i++)
        a->words[n++] = a->option_argv[i];
    a->words[n++] = (char *)"--";
    for (u32 i = 0; i < a->program.word_count; i++)
        a->words[n++] = (char *)a->program.words[i];
    if (a->program.word_count)
        a->words[n++] = a->path;
    else
        a->words[n++] = argc ? r->argv[0] : (char *)"";
    for (size_t i = 1; i < argc; i++)
        a->words[n++] = r->argv[i];
    a->words[n] = NULL;
    environment_hide(r->envp, (char *)(a->words + words_max));

    r->is_followed = true;
    r->dirfd = AT_FDCWD;
    r->flags = 0;
    r->path = engine_path;
    r->argv = a->words;
    return 0;
}

void follow_init(const struct Options *options)
{
    run_options = options;
    ssize_t n = readlink("/proc/self/exe", engine_path, sizeof(engine_path) - 1);
    if (n > 0 && options->trace_children)
        exec_follow_hook = follow;
}
