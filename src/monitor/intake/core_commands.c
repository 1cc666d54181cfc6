// SPDX-License-Identifier: MIT
//
// The commands that the monitor answers from what it knows of the run.
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor/intake/run.h"

enum { FRAMES_OF_ONE_PLACE = 64 };

u64 now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

// -------------------------------------------------------------------- answers

static void say_in_report(Run *run, char *text)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        report_line(run->report, line);
}

void answer_say(const CommandAnswer *answer, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        return;
    if (answer->call)
        control_say(answer->call, text, (size_t)size);
    else if (answer->run->report)
        say_in_report(answer->run, text);
    free(text);
}

// --------------------------------------------------------------------- /proc

// What follows the name, which may contain anything, in /proc/PID/task/TID/stat.
static bool read_stat(i32 pid, i32 tid, char text[1024])
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t n = fread(text, 1, 1023, file);
    fclose(file);
    text[n] = '\0';
    char *behind = strrchr(text, ')');
    if (!behind || behind[1] != ' ')
        return false;
    memmove(text, behind + 2, strlen(behind + 2) + 1);
    return true;
}

char process_state(i32 pid, i32 tid)
{
    char text[1024];

    return read_stat(pid, tid, text) ? text[0] : '?';
}

static const char *state_word(char state)
{
    switch (state) {
    case 'R': return "running";
    case 'S': return "waiting";
    case 'D': return "waiting for a device";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    case 'Z':
    case 'X': return "ending";
    default: return "unknown";
    }
}

// ------------------------------------------------------------------- commands

typedef struct Counts {
    u64 errors, contexts, suppressed, suppressed_contexts;
} Counts;

static u64 times_of(const Run *run, const RunFinding *f)
{
    u64 count = __atomic_load_n(&run->shared->findings[f->id].count, __ATOMIC_RELAXED);
    return count ? count : 1;
}

static Counts count_errors(const Run *run)
{
    Counts counts = {0};

    for (size_t i = 0; i < run->findings.count; i++) {
        const RunFinding *f = *(RunFinding **)vec_at(&run->findings, i);
        if (f->verdict == VERDICT_SHOWN) {
            counts.errors += times_of(run, f);
            counts.contexts++;
        } else if (f->verdict == VERDICT_SUPPRESSED) {
            counts.suppressed += times_of(run, f);
            counts.suppressed_contexts++;
        }
    }
    return counts;
}

static int do_status(const CommandAnswer *answer, const char *arguments)
{
    const Run *run = answer->run;
    Counts counts = count_errors(run);
    u64 age_ms = now_ms() - (u64)run->info.start_ms;

    (void)arguments;
    answer_say(answer, "program   %s\n", run->info.program);
    answer_say(answer, "pid       %d\n", run->info.pid);
    answer_say(answer, "tool      %s\n", run->info.tool);
    answer_say(answer, "state     %s\n", state_word(process_state(run->os_pid, run->os_pid)));
    answer_say(answer, "threads   %zu\n", map_count(&run->thread_tids));
    answer_say(answer, "age       %llu.%03llu s\n", (unsigned long long)(age_ms / 1000),
               (unsigned long long)(age_ms % 1000));
    answer_say(answer, "errors    %llu from %llu contexts (suppressed: %llu from %llu)\n",
               (unsigned long long)counts.errors, (unsigned long long)counts.contexts,
               (unsigned long long)counts.suppressed,
               (unsigned long long)counts.suppressed_contexts);
    answer_say(answer, "records   %llu\n", (unsigned long long)run->records);
    answer_say(answer, "monitor   %d\n", (int)getpid());
    return 0;
}

static void say_finding(const CommandAnswer *answer, const RunFinding *f, u64 index, u64 total)
{
    const Run *run = answer->run;
    u64 times = times_of(run, f);
    char *text = report_finding_text(run->report, &f->finding);

    answer_say(answer, "==%d== %llu error%s in context %llu of %llu:\n%s", run->info.pid,
               (unsigned long long)times, times == 1 ? "" : "s", (unsigned long long)index,
               (unsigned long long)total, text ? text : "");
    free(text);
}

static int do_errors(const CommandAnswer *answer, const char *arguments)
{
    const Run *run = answer->run;
    u64 index = 0, total = count_errors(run).contexts;

    (void)arguments;
    for (size_t i = 0; i < run->findings.count; i++) {
        const RunFinding *f = *(RunFinding **)vec_at(&run->findings, i);
        if (f->verdict == VERDICT_SHOWN)
            say_finding(answer, f, ++index, total);
    }
    if (total == 0)
        answer_say(answer, "no errors so far\n");
    return 0;
}

static int do_last_error(const CommandAnswer *answer, const char *arguments)
{
    const Run *run = answer->run;
    u64 total = count_errors(run).contexts;

    (void)arguments;
    for (size_t i = run->findings.count; i-- > 0;) {
        const RunFinding *f = *(RunFinding **)vec_at(&run->findings, i);
        if (f->verdict == VERDICT_SHOWN) {
            say_finding(answer, f, total, total);
            return 0;
        }
    }
    answer_say(answer, "no errors so far\n");
    return 0;
}

static int do_n_errs(const CommandAnswer *answer, const char *arguments)
{
    Counts counts = count_errors(answer->run);

    answer_say(answer, "n_errs_found %llu n_errs_shown %llu%s%s%s\n",
               (unsigned long long)counts.errors, (unsigned long long)counts.contexts,
               *arguments ? " (" : "", arguments, *arguments ? ")" : "");
    return 0;
}

static u64 uses_of(const Run *run, const Suppression *suppression)
{
    u64 uses = 0;

    for (size_t i = 0; i < run->findings.count; i++) {
        const RunFinding *f = *(RunFinding **)vec_at(&run->findings, i);
        if (f->verdict == VERDICT_SUPPRESSED && f->suppression == suppression)
            uses += times_of(run, f);
    }
    return uses;
}

static int do_suppressions(const CommandAnswer *answer, const char *arguments)
{
    const Run *run = answer->run;
    bool any = false;

    (void)arguments;
    for (size_t i = 0; i < suppress_count(run->suppressions); i++) {
        const Suppression *s = suppress_at(run->suppressions, i);
        u64 uses = uses_of(run, s);
        if (uses)
            answer_say(answer, "used_suppression: %6llu %s %s:%u\n", (unsigned long long)uses,
                       s->name, s->file, s->line);
        any |= uses != 0;
    }
    if (!any)
        answer_say(answer, "no suppression was used so far\n");
    return 0;
}

static int do_location(const CommandAnswer *answer, const char *arguments)
{
    Run *run = answer->run;
    Frame frames[FRAMES_OF_ONE_PLACE];
    char text[4096], *end;

    errno = 0;
    u64 address = strtoull(arguments, &end, 0);
    if (end == arguments || *end || errno) {
        answer_say(answer, "location: the address of code, in hexadecimal with 0x\n");
        return 1;
    }
    CodePlace place = symbols_place(run->symbols, address);
    if (place.module == 0) {
        answer_say(answer, "0x%llX: not in code that the program has mapped\n",
                   (unsigned long long)address);
        return 1;
    }
    size_t count = symbols_frames(run->symbols, place, address, false, frames, ARRAY_LEN(frames));
    for (size_t i = 0; i < count; i++) {
        report_frame_text(run->report, &frames[i], text, sizeof(text));
        answer_say(answer, "0x%llX: %s\n", (unsigned long long)address, text);
    }
    return 0;
}

static int do_kill(const CommandAnswer *answer, const char *arguments)
{
    (void)arguments;
    if (kill(answer->run->os_pid, SIGKILL) != 0) {
        answer_say(answer, "kill: %s\n", strerror(errno));
        return 1;
    }
    answer_say(answer, "the program is killed\n");
    return 0;
}

static void say_heap(void *arg, const char *text)
{
    answer_say(arg, "%s", text);
}

static void say_in_call(void *call, const char *text)
{
    control_say(call, text, strlen(text));
}

static void end_call(void *call, int status)
{
    control_end(call, status);
}

static int ask_heap(const CommandAnswer *answer, HeapCommand command, const char *arguments)
{
    if (!answer->run->heap) {
        answer_say(answer, "only --tool=massif keeps a model of the heap\n");
        return 1;
    }
    HeapModel *heap = answer->run->heap;
    if (answer->call)
        return heap_command(heap, command, arguments, say_in_call, end_call, answer->call, false);
    return heap_command(heap, command, arguments, say_heap, NULL, (void *)answer, true);
}

static int do_snapshot(const CommandAnswer *answer, const char *arguments)
{
    return ask_heap(answer, HEAP_SNAPSHOT, arguments);
}

static int do_detailed_snapshot(const CommandAnswer *answer, const char *arguments)
{
    return ask_heap(answer, HEAP_DETAILED_SNAPSHOT, arguments);
}

static int do_all_snapshots(const CommandAnswer *answer, const char *arguments)
{
    return ask_heap(answer, HEAP_ALL_SNAPSHOTS, arguments);
}

static int do_heap_top(const CommandAnswer *answer, const char *arguments)
{
    return ask_heap(answer, HEAP_TOP, arguments);
}

typedef int CoreCommandFn(const CommandAnswer *answer, const char *arguments);
static CoreCommandFn *const functions[CONTROL_COMMANDS] = {
    [CONTROL_STATUS] = do_status,
    [CONTROL_ERRORS] = do_errors,
    [CONTROL_ALL_ERRORS] = do_errors,
    [CONTROL_LAST_ERROR] = do_last_error,
    [CONTROL_N_ERRS] = do_n_errs,
    [CONTROL_SUPPRESSIONS] = do_suppressions,
    [CONTROL_LOCATION] = do_location,
    [CONTROL_KILL] = do_kill,
    [CONTROL_SNAPSHOT] = do_snapshot,
    [CONTROL_DETAILED_SNAPSHOT] = do_detailed_snapshot,
    [CONTROL_ALL_SNAPSHOTS] = do_all_snapshots,
    [CONTROL_HEAP_TOP] = do_heap_top,
};

int core_command(const CommandAnswer *answer, ControlCommandId id, const char *arguments)
{
    if (!answer->run->report) {
        answer_say(answer, "the program has not begun\n");
        return 1;
    }
    return functions[id] ? functions[id](answer, arguments) : 1;
}
