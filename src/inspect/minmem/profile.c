// SPDX-License-Identifier: MIT
//
// One run under massif: the peaks of heap, mapped pages and stacks, and the stacks of calls that
// make them. Every process of the program writes a recording; that of the largest is told about.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inspect/minmem/trial.h"
#include "recording/massif_out.h"
#include "recording/recording.h"

enum {
    SLOWER = 60, // than natively: when a run under massif is given up
    SLOWER_MORE_MS = 30000,
    OPTION_WORDS = 9,
    MONITOR_MS = 20000, // for the monitor to finish the recording
};

// ----------------------------------------------------------------- the recordings

static void ignore_warning(void *unused, const char *line)
{
    (void)unused, (void)line;
}

typedef bool FileFn(void *arg, const char *path);

// Calls fn for every recording in the directory, until it returns false.
static void each_recording(const char *directory, FileFn *fn, void *arg)
{
    DIR *dir = opendir(directory);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "heap.", 5) != 0)
            continue;
        snprintf(path, sizeof(path), "%.2000s/%.200s", directory, entry->d_name);
        if (!fn(arg, path))
            break;
    }
    if (dir)
        closedir(dir);
}

static bool is_finished(void *arg, const char *path)
{
    char *error = NULL;
    Recording *recording = recording_open(path, ignore_warning, NULL, &error);
    bool *is_all_finished = arg;

    *is_all_finished = recording && recording_end(recording)->known;
    recording_free(recording);
    free(error);
    return *is_all_finished;
}

// The monitor is a process of its own, which this one will end with all that the run has left.
static void wait_for_monitor(void *arg)
{
    static const struct timespec pause = {0, 20 * 1000000};

    for (u32 waited_ms = 0; waited_ms < MONITOR_MS; waited_ms += 20) {
        bool is_all_finished = false;
        each_recording(arg, is_finished, &is_all_finished);
        if (is_all_finished)
            return;
        nanosleep(&pause, NULL);
    }
}

// --------------------------------------------------------------------- the peaks

static void add_frame(ProfileStack *stack, const RecordedFrame *frame)
{
    char *text = stack->frames[stack->frame_count++];
    size_t size = sizeof(stack->frames[0]);
    const char *slash = frame->object ? strrchr(frame->object, '/') : NULL;

    if (frame->function && frame->file && frame->line)
        snprintf(text, size, "%.100s (%.40s:%u)", frame->function, frame->file, frame->line);
    else if (frame->object)
        snprintf(text, size, "%.100s (in %.40s)", frame->function ? frame->function : "???",
                 slash ? slash + 1 : frame->object);
    else
        snprintf(text, size, "0x%llX", (unsigned long long)frame->pc);
    for (char *c = text; *c; c++) {
        if ((u8)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
}

static bool is_main(const RecordedFrame *frame)
{
    return frame->function && strcmp(frame->function, "main") == 0;
}

// malloc and the like; of pages also the C library and the dynamic linker, which only pass on
// what others want.
static bool is_plumbing(const RecordedFrame *frame, Space space)
{
    const char *slash = frame->object ? strrchr(frame->object, '/') : NULL;
    bool is_libc = slash && (strncmp(slash, "/libc.so", 8) == 0 || strncmp(slash, "/ld-", 4) == 0);

    return massif_out_is_allocator(frame->function, NULL, 0) || (space == SPACE_MAPPED && is_libc);
}

// The innermost frames, up to main. False: all of it is plumbing, if that is to be left out.
static bool add_frames(const Recording *recording, u32 context, Space space, bool keeps_plumbing,
                       ProfileStack *stack)
{
    bool is_inside = !keeps_plumbing;

    for (; context != 0; context = recording_context(recording, context)->parent) {
        const RecordedContext *info = recording_context(recording, context);
        for (u32 i = 0; i < info->frame_count; i++) {
            const RecordedFrame *frame = recording_frame(recording, info->first_frame + i);
            is_inside = is_inside && is_plumbing(frame, space);
            if (is_inside)
                continue;
            add_frame(stack, frame);
            if (stack->frame_count == PROFILE_FRAMES_MAX || is_main(frame))
                return true;
        }
    }
    return !is_inside;
}

static void describe_stack(const Recording *recording, u32 context, Space space,
                           ProfileStack *stack)
{
    if (context == 0)
        snprintf(stack->frames[stack->frame_count++], sizeof(stack->frames[0]), "%s",
                 space == SPACE_MAPPED ? "there before its first instruction" : "???");
    else if (!add_frames(recording, context, space, false, stack))
        add_frames(recording, context, space, true, stack);
}

typedef struct ContextBytes {
    u32 context;
    u64 bytes;
} ContextBytes;

static int compare_context(const void *a, const void *b)
{
    const ContextBytes *x = a, *y = b;

    return x->context < y->context ? -1 : x->context > y->context;
}

static int compare_bytes(const void *a, const void *b)
{
    const ContextBytes *x = a, *y = b;

    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

// Sums up what several threads have of one context. Returns how many are left.
static u32 merge_threads(ContextBytes *list, u32 count)
{
    u32 kept = 0;

    qsort(list, count, sizeof(*list), compare_context);
    for (u32 i = 0; i < count; i++) {
        if (kept > 0 && list[kept - 1].context == list[i].context)
            list[kept - 1].bytes += list[i].bytes;
        else
            list[kept++] = list[i];
    }
    qsort(list, kept, sizeof(*list), compare_bytes);
    return kept;
}

// What less than a hundredth has explains nothing.
static void add_stacks(const Recording *recording, const ContextBytes *list, u32 count,
                       Space space, ProfilePart *part)
{
    for (u32 i = 0; i < count && i < PROFILE_STACKS_MAX; i++) {
        if (list[i].bytes < part->peak_bytes / 100)
            break;
        ProfileStack *stack = &part->stacks[part->stack_count++];
        stack->bytes = list[i].bytes;
        describe_stack(recording, list[i].context, space, stack);
    }
}

// What the spaces (bits 1 << Space) hold, by context, the most first. Returns how many there are.
static u32 list_contexts(const Recording *recording, const SiteSums *sums, u32 spaces,
                         ContextBytes *ret_list)
{
    u32 count = 0;

    for (u32 i = 0; i < recording_site_count(recording); i++) {
        const RecordedSite *site = recording_site(recording, i);
        if (spaces >> site->space & 1 && sums[i].live_bytes > 0)
            ret_list[count++] = (ContextBytes){site->context, sums[i].live_bytes};
    }
    return merge_threads(ret_list, count);
}

static void read_part(Recording *recording, StateReason reason, Space space, ProfilePart *part)
{
    size_t index = recording_find_state(recording, reason);
    u32 site_count = recording_site_count(recording), count = 0;
    SiteSums *sums = calloc((size_t)site_count + 1, sizeof(*sums));
    ContextBytes *list = calloc((size_t)site_count + 1, sizeof(*list));

    if (sums && list && index != SIZE_MAX && recording_state(recording, index, sums)) {
        part->is_known = true;
        count = list_contexts(recording, sums, 1u << space, list);
    }
    for (u32 i = 0; i < count; i++)
        part->peak_bytes += list[i].bytes;
    add_stacks(recording, list, count, space, part);
    free(sums);
    free(list);
}

// Who touched a page nobody has told; but what heap and stacks held when the most was resident is
// known.
static void read_resident(Recording *recording, ProfilePart *part)
{
    const u32 spaces = 1u << SPACE_HEAP | 1u << SPACE_STACK;
    u32 site_count = recording_site_count(recording);
    SiteSums *sums = calloc((size_t)site_count + 1, sizeof(*sums));
    ContextBytes *list = calloc((size_t)site_count + 1, sizeof(*list));
    u64 at_ns = 0;

    for (size_t i = 0; i < recording_sample_count(recording); i++) {
        const Sample *sample = recording_sample(recording, i);
        at_ns = sample->rss_bytes > part->peak_bytes ? sample->ns : at_ns;
        part->peak_bytes = max_u64(part->peak_bytes, sample->rss_bytes);
    }
    part->is_known = part->peak_bytes > 0;
    if (part->is_known && sums && list && recording_range(recording, 0, at_ns + 1, sums))
        add_stacks(recording, list, list_contexts(recording, sums, spaces, list), SPACE_HEAP, part);
    free(sums);
    free(list);
}

// Keeps the profile of the process that held the most.
static bool read_recording(void *arg, const char *path)
{
    Profile *best = arg;
    Profile profile = {.is_known = true};
    char *error = NULL;
    Recording *recording = recording_open(path, ignore_warning, NULL, &error);

    free(error);
    if (!recording)
        return true;
    read_part(recording, STATE_PEAK, SPACE_HEAP, &profile.heap);
    read_part(recording, STATE_PEAK_MAPPED, SPACE_MAPPED, &profile.mapped);
    read_part(recording, STATE_PEAK_STACK, SPACE_STACK, &profile.stack);
    read_resident(recording, &profile.resident);
    recording_free(recording);
    u64 size = profile.heap.peak_bytes + profile.mapped.peak_bytes;
    if (!best->is_known || size > best->heap.peak_bytes + best->mapped.peak_bytes)
        *best = profile;
    return true;
}

// ----------------------------------------------------------------------- the run

// The launcher, beside this program or where it is installed.
static bool find_launcher(char launcher[PATH_MAX])
{
    static const char *const places[] = {"muninn", "../../bin/muninn"};
    char own[PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

    if (n <= 0)
        return false;
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(launcher, PATH_MAX, "%s/%s", own, places[i]);
        if (access(launcher, X_OK) == 0)
            return true;
    }
    return false;
}

static void remove_directory(const char *directory)
{
    DIR *dir = opendir(directory);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
    rmdir(directory);
}

// The program's words behind those of muninn; to be freed.
static char **profile_command(const Options *options, char *launcher, char *out, char *recording)
{
    char *const words[OPTION_WORDS] = {
        launcher, "--command-line-only=yes", "--tool=massif", "-q", "--trace-children=yes",
        "--stacks=apart", "--max-recording=256M", out, recording,
    };
    char **command = calloc(OPTION_WORDS + (size_t)options->command_count + 1, sizeof(*command));

    if (!command)
        return NULL;
    memcpy(command, words, sizeof(words));
    memcpy(command + OPTION_WORDS, options->command,
           (size_t)options->command_count * sizeof(*command));
    return command;
}

// In a session that is a copy: what is found out about limits there is nobody's business.
static void run_profiled(const Session *session, char **command, char *directory,
                         RunResult *ret_result)
{
    Options options = *session->options;
    Session profiled = *session;

    options.command = command;
    options.check = NULL;
    profiled.options = &options;
    profiled.output_fd = -1;
    profiled.has_baseline = false;
    profiled.group[0] = '\0';
    profiled.limit = LIMIT_DATA; // and none is set
    profiled.timeout_ms = session->timeout_ms * SLOWER / 10 + SLOWER_MORE_MS;
    profiled.before_cleanup = wait_for_monitor;
    profiled.cleanup_argument = directory;
    run_once(&profiled, UINT64_MAX, ret_result);
}

void profile_run(Session *session, Profile *ret_profile)
{
    char launcher[PATH_MAX], directory[64] = "/tmp/muninn-minmem.XXXXXX";
    char out[128], recording[128];
    char **command = NULL;
    RunResult result = {.verdict = VERDICT_TROUBLE};

    *ret_profile = (Profile){.is_known = false};
    report_progress(session, "under massif");
    bool is_ready = find_launcher(launcher) && mkdtemp(directory);
    if (is_ready) {
        snprintf(out, sizeof(out), "--massif-out-file=%s/massif.%%p", directory);
        snprintf(recording, sizeof(recording), "--recording-file=%s/heap.%%p", directory);
        command = profile_command(session->options, launcher, out, recording);
        if (command)
            run_profiled(session, command, directory, &result);
        each_recording(directory, read_recording, ret_profile);
        remove_directory(directory);
    }
    if (!ret_profile->is_known)
        snprintf(ret_profile->why_not, sizeof(ret_profile->why_not), "%s",
                 !is_ready                           ? "there is no muninn to run it under massif"
                 : result.verdict == VERDICT_TIMEOUT ? "under massif it took too long"
                                                     : "the run under massif recorded nothing");
    free(command);
}
