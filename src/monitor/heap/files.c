// SPDX-License-Identifier: MIT
//
// What is left of a run: the recording, which grows while the program runs, and
// massif.out, which is written at its end or when somebody asks.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/output_file.h"
#include "monitor/heap/model.h"

static void say(HeapModel *model, const char *what, const char *path, const char *why)
{
    char line[PATH_MAX + 256];
    snprintf(line, sizeof(line), "muninn: %s %s: %s", what, path, why);
    if (model->config.say)
        model->config.say(model->config.say_arg, line);
}

static void alarm_of(HeapModel *model, const char *what, const char *path, int error)
{
    char line[PATH_MAX + 256];
    snprintf(line, sizeof(line), "cannot write %s %s: %s", what, path, output_error(error));
    if (model->config.alarm)
        model->config.alarm(model->config.say_arg, line);
}

// The words as a shell would take them.
static char *join_words(int count, const char *const *words, bool quote, bool ours)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_first = true;

    if (!out)
        return NULL;
    for (int i = 0; i < count; i++) {
        if (ours && strncmp(words[i], "--tool=", 7) == 0)
            continue; // that it is massif is known
        bool plain = !quote || (*words[i] && !strpbrk(words[i], " \t\n'\"\\$*?;&|<>()`#~"));
        fputs(is_first ? "" : " ", out);
        is_first = false;
        if (!plain)
            fputc('\'', out);
        for (const char *c = words[i]; *c; c++) {
            if (*c == '\n')
                fputs("\\n", out); // these are files of lines
            else if (*c == '\'' && !plain)
                fputs("'\\''", out);
            else
                fputc(*c, out);
        }
        if (!plain)
            fputc('\'', out);
    }
    fclose(out);
    return text;
}

static bool put_pid(const HeapModel *model, char path[PATH_MAX])
{
    size_t length = strlen(path);
    return snprintf(path + length, PATH_MAX - length, ".%d", model->config.pid) <
           (int)(PATH_MAX - length);
}

// `parents`: the name that a fork's parent has for its own, or NULL.
static char *expand(HeapModel *model, const char *template, const char *what,
                    const char *parents)
{
    char path[PATH_MAX];
    int error = options_expand_path(template, model->config.pid, 1, path, sizeof(path));

    if (error) {
        alarm_of(model, what, template, error);
        return NULL;
    }
    if (parents && strcmp(path, parents) == 0 && output_is_kept(path) && !put_pid(model, path))
        return NULL;
    return strdup(path);
}

// ------------------------------------------------------------------ recording

static u64 wall_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

// Its writer has it locked.
static bool is_being_written(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool is_locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd);
    return is_locked;
}

// Whoever reads an old recording of this name goes on reading it.
static void make_way_for_new(const char *path)
{
    struct stat status;

    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && !is_being_written(path))
        unlink(path);
}

// One that another process is still writing stays, and this one gets another name.
static bool take_other_name(HeapModel *model)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", model->recording_path);
    char *other = put_pid(model, path) ? strdup(path) : NULL;
    if (!other)
        return false;
    say(model, "the recording is", other,
        "another process is writing the one that was named (%p in a name is the process's id)");
    free(model->recording_path);
    model->recording_path = other;
    make_way_for_new(other);
    return true;
}

static void open_recording(HeapModel *model)
{
    const Options *options = model->options;
    const HeapConfig *config = &model->config;
    int error = 0;
    make_way_for_new(model->recording_path);
    char *command = join_words(config->argc, config->argv, true, false);
    char *words = join_words(config->option_count, config->option_words, true, true);
    RecordingInfo info = {
        .tool = config->tool,
        .command = command ? command : "",
        .options = words ? words : "",
        .executable = config->program,
        .pid = config->pid,
        .start_unix_ns = wall_clock_ns() - model_moment(model).ns,
        .counts_instructions = options->time_unit == TIME_UNIT_INSTRUCTIONS,
        .pages_as_heap = options->pages_as_heap,
        .has_stacks = options->stacks == STACKS_YES,
        .heap_admin_bytes = (u32)model->admin_bytes,
        .time_unit = options->time_unit,
        .depth = (u32)options->depth,
        .threshold_ppm = options->threshold_ppm,
    };
    WriterConfig writer = {
        .path = model->recording_path,
        .max_bytes = options->max_recording_bytes,
        .has_numbers = true,
    };
    model->writer = recording_create(&writer, &info, &error);
    if (!model->writer && error == EWOULDBLOCK && take_other_name(model)) {
        writer.path = model->recording_path;
        model->writer = recording_create(&writer, &info, &error);
    }
    if (!model->writer)
        alarm_of(model, "the recording", model->recording_path, error < 0 ? error : -error);
    free(command);
    free(words);
}

void files_open(HeapModel *model, const char *parents_massif, const char *parents_recording)
{
    const Options *options = model->options;

    model->massif_path = expand(model, options->massif_out_file, "--massif-out-file",
                                parents_massif);
    int error = model->massif_path ? output_probe(model->massif_path) : 0;
    if (error)
        alarm_of(model, "massif's output", model->massif_path, error);
    if (!options->recording)
        return;
    model->recording_path = expand(model, options->recording_file, "--recording-file",
                                   parents_recording);
    if (model->recording_path)
        open_recording(model);
}

typedef Live StateOfFn(const HeapModel *model, const Site *site, PeakKind kind);

static Live state_now(const HeapModel *model, const Site *site, PeakKind kind)
{
    (void)model;
    (void)kind;
    return site->live;
}

static void keep_state(HeapModel *model, StateReason reason, const char *label,
                       const Moment *moment, StateOfFn *state_of, PeakKind kind)
{
    // PEAK_KINDS: of no peak, but of now.
    SiteSums *sums = model->writer ? calloc(model->site_count + 1, sizeof(*sums)) : NULL;

    Moment recorded = *moment;

    if (!sums)
        return;
    recorded.allocated_bytes = kind == PEAK_KINDS ? model->requested_bytes
                                                  : model->peaks[kind].requested_bytes;
    for (u32 i = 0; i < model->site_count; i++) {
        Live live = state_of(model, &model->sites[i], kind);
        sums[i].live_bytes = live.bytes;
        sums[i].live_blocks = live.blocks;
        sums[i].live_usable = live.usable;
    }
    recording_keep_state(model->writer, reason, label, &recorded, sums, model->site_count);
    free(sums);
}

void files_keep_state(HeapModel *model, StateReason reason, const char *label,
                      const Moment *moment)
{
    keep_state(model, reason, label, moment, state_now, PEAK_KINDS);
}

static void keep_peaks(HeapModel *model)
{
    static const StateReason reasons[PEAK_KINDS] = {
        [PEAK_HEAP] = STATE_PEAK,
        [PEAK_MAPPED] = STATE_PEAK_MAPPED,
        [PEAK_STACK] = STATE_PEAK_STACK,
        [PEAK_ALL] = STATE_PEAK_ALL,
        [PEAK_BOTH] = STATE_PEAK_COUNTED,
    };
    PeakKind main = model->main_peak;
    for (int kind = 0; kind < PEAK_KINDS; kind++) {
        if (model->peaks[kind].bytes)
            keep_state(model, reasons[kind], NULL, &model->peaks[kind].moment, site_at_peak, kind);
    }
    if ((main == PEAK_MAPPED || main == PEAK_STACK) && model->peaks[main].bytes)
        keep_state(model, STATE_PEAK_COUNTED, NULL, &model->peaks[main].moment, site_at_peak,
                   main);
}

static void add_counts(const Window *window, const u16 *few, u32 few_count,
                       u64 counts[HISTOGRAM_BUCKETS])
{
    for (u32 i = 0; i < window->count; i++)
        counts[window->first + i] += window->counts[i];
    for (u32 i = 0; i < few_count; i++)
        counts[i] += few[i];
}

void site_histogram(const Site *site, SiteHistogram *ret_histogram)
{
    *ret_histogram = (SiteHistogram){0};
    add_counts(&site->sizes, site->few_sizes, FEW_SIZES, ret_histogram->sizes);
    add_counts(&site->lifetimes, site->few_lifetimes, FEW_LIFETIMES, ret_histogram->lifetimes);
}

static void record_histograms(HeapModel *model)
{
    for (u32 i = 0; i < model->site_count; i++) {
        SiteHistogram histogram;
        site_histogram(&model->sites[i], &histogram);
        recording_set_histogram(model->writer, i, &histogram);
    }
}

static void record_living(HeapModel *model)
{
    for (u32 i = 1; i < model->blocks.used; i++) {
        const LiveBlock *block = &model->blocks.pool[i];
        if (block->place && block->site != SITE_IGNORED)
            recording_add_living(model->writer, &(RecordedBlock){
                .site = block->site, .address = block_address(block), .size = block->size,
                .usable = block_usable(block), .born_ns = block->born_ns});
    }
}

static void close_recording(HeapModel *model, const HeapEnd *how)
{
    RecordingEnd end = {
        .known = true,
        .kind = how->is_known ? END_TOLD : how->by_exec ? END_EXECUTED : END_UNTOLD,
        .status = how->status,
        .signal = how->signal,
    };
    Moment moment = model_moment(model);

    moment.allocated_bytes = model->requested_bytes;
    recording_close_slice(model->writer, &moment);
    keep_peaks(model);
    files_keep_state(model, STATE_END, NULL, &moment);
    record_histograms(model);
    record_living(model);
    names_record_all(model);
    int error = recording_close(model->writer, &moment, &end);
    if (error < 0)
        alarm_of(model, "the recording", model->recording_path, error);
    model->writer = NULL;
    // Twins may be to come, and the name may be another's by then.
    model->recording_fd = open(model->recording_path, O_RDONLY | O_CLOEXEC);
}

// ------------------------------------------------------------------ massif.out

static const char *const time_units[] = {
    [TIME_UNIT_INSTRUCTIONS] = "i",
    [TIME_UNIT_MS] = "ms",
    [TIME_UNIT_BYTES] = "B",
};

// What was not counted is not shown.
static const char *shown_unit(const HeapModel *model)
{
    u32 unit = model->options->time_unit;
    bool counted = unit != TIME_UNIT_INSTRUCTIONS || model->now.instructions != 0;
    return time_units[counted ? unit : TIME_UNIT_MS];
}

static MassifSnapshot shown(const HeapModel *model, const Kept *kept, bool is_peak)
{
    return (MassifSnapshot){
        .time = massif_out_time(shown_unit(model), &kept->moment),
        .heap_bytes = kept->heap_bytes,
        .extra_bytes = kept->extra_bytes,
        .stack_bytes = kept->stack_bytes,
        .is_detailed = kept->is_detailed,
        .is_peak = is_peak,
        .site_count = kept->site_count,
        .live_count = kept->live_count,
        .sites = kept->sites,
        .bytes = kept->bytes,
    };
}

// All that were kept, the peak among them, and the end. Returns their number.
static size_t list_all(HeapModel *model, const Kept *peak, const Kept *last, bool at_end,
                       MassifSnapshot *ret_list)
{
    const SnapshotList *list = &model->snapshots;
    u64 peak_at = model_clock(model, &peak->moment);
    bool has_peak = model->main_peak != PEAK_KINDS && model->peaks[model->main_peak].bytes > 0;
    bool is_put = !has_peak;
    u64 before = has_peak ? peak->moment.allocated_bytes : 0; // when the last one was
    size_t count = 0;

    for (u32 i = 0; i < list->count; i++) {
        const Kept *kept = &list->kept[i];
        u64 at = model_clock(model, &kept->moment);
        before = max_u64(before, kept->moment.allocated_bytes);
        if (!is_put && (at > peak_at || (at == peak_at && kept->moment.allocated_bytes >
                                                              peak->moment.allocated_bytes))) {
            ret_list[count++] = shown(model, peak, true);
            is_put = true;
        }
        ret_list[count++] = shown(model, kept, false);
    }
    if (!is_put)
        ret_list[count++] = shown(model, peak, true);
    // A unit of time may see many events: that it is still the same says nothing about the state.
    MassifSnapshot end = shown(model, last, false);
    bool is_new = count == 0 || before != last->moment.allocated_bytes ||
                  ret_list[count - 1].time != end.time;
    if (at_end && last->moment.allocated_bytes != 0 && is_new)
        ret_list[count++] = end;
    return count;
}

static void write_list(HeapModel *model, FILE *file, const MassifSnapshot *list, size_t count)
{
    const Options *options = model->options;
    const HeapConfig *config = &model->config;
    char *command = join_words(config->argc, config->argv, false, false);
    char *words = join_words(config->option_count, config->option_words, false, true);

    massif_out_write(file, &(MassifConfig){
        .options = words,
        .command = command ? command : "",
        .time_unit = shown_unit(model),
        .pages_as_heap = options->pages_as_heap,
        .show_below_main = options->show_below_main,
        .depth = (u32)options->depth,
        .threshold_ppm = options->threshold_ppm,
        .alloc_fn_count = options->alloc_fn.count,
        .alloc_fns = options->alloc_fn.items,
        .stacks = names_stacks(model),
        .site_count = model->site_count,
    }, list, count);
    free(command);
    free(words);
}

int files_write_massif(HeapModel *model, const char *path, MassifWhich which, bool at_end)
{
    MassifSnapshot *list = calloc(model->snapshots.count + 2, sizeof(*list));
    int error = -ENOMEM;
    FILE *file = list ? output_stream(path, &error) : NULL;

    if (file) {
        Kept peak = which == MASSIF_ALL ? snapshots_peak(model) : (Kept){0};
        Kept last = snapshots_now(model, which != MASSIF_NOW);
        last.moment = model_moment(model);
        size_t count = 1;
        if (which == MASSIF_ALL)
            count = list_all(model, &peak, &last, at_end, list);
        else
            list[0] = shown(model, &last, false);
        errno = 0;
        write_list(model, file, list, count);
        // Every write since the first that failed has failed for the same reason.
        error = !ferror(file) ? 0 : errno ? -errno : -EIO;
        if (fclose(file) != 0 && error == 0)
            error = -errno;
        kept_free(&peak);
        kept_free(&last);
    }
    free(list);
    return error;
}

// The program that goes on under this pid writes files with the same names: ours get a number.
static void make_way(char **path)
{
    char *other = NULL;

    if (!*path || !output_is_kept(*path))
        return;
    for (int n = 1; n < 1000; n++) {
        free(other);
        if (asprintf(&other, "%s.%d", *path, n) < 0)
            return;
        if (access(other, F_OK) != 0)
            break;
    }
    free(*path);
    *path = other;
}

// Where the path is a link of the user's, the file that it leads to gets another name.
void files_make_way(HeapModel *model)
{
    if (!model->writer || !model->options->trace_children || model->usual_path)
        return;
    const char *own_name = recording_own_name(model->writer);
    char *usual = own_name ? strdup(own_name) : NULL, *other = usual ? strdup(usual) : NULL;
    make_way(&other);
    if (!other || !recording_move(model->writer, other)) {
        free(usual);
        free(other);
        return;
    }
    model->usual_path = model->recording_path;
    model->usual_name = usual;
    model->recording_path = other;
}

void files_come_back(HeapModel *model)
{
    if (!model->usual_path)
        return;
    recording_move(model->writer, model->usual_name);
    free(model->usual_name);
    free(model->recording_path);
    model->recording_path = model->usual_path;
    model->usual_path = model->usual_name = NULL;
}

// The end says it again.
void files_check_recording(HeapModel *model)
{
    int error = model->writer ? recording_writer_error(model->writer) : 0;

    if (!error || model->has_told_recording)
        return;
    model->has_told_recording = true;
    alarm_of(model, "the recording", model->recording_path, error);
}

char *files_command(const HeapModel *model)
{
    return join_words(model->config.argc, model->config.argv, false, false);
}

static void write_xtree(HeapModel *model)
{
    char *path = expand(model, model->options->xtree_memory_file, "--xtree-memory-file", NULL);
    int error = path ? xtree_write(model, path) : 0;
    if (error)
        say(model, "the xtree memory report", path, strerror(-error));
    free(path);
}

void files_close(HeapModel *model, const HeapEnd *end)
{
    names_resolve_all(model);
    if (model->options->xtree_memory != XTREE_MEMORY_NONE)
        write_xtree(model);
    if (end->by_exec && model->options->trace_children)
        make_way(&model->massif_path);
    if (model->massif_path) {
        int error = files_write_massif(model, model->massif_path, MASSIF_ALL, true);
        if (error)
            alarm_of(model, "massif's output", model->massif_path, error);
    }
    if (model->writer)
        close_recording(model, end);
}
