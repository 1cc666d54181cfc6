// SPDX-License-Identifier: MIT
//
// --progress-interval: a line every so often, so that whoever waits sees that there is something to
// wait for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/intake/run.h"

// User time in ticks and the number of threads, as /proc/PID/stat has them behind the name.
static bool read_process(i32 pid, u64 *ret_ticks, u32 *ret_threads)
{
    enum { UTIME = 14, STIME = 15, THREADS = 20, FIRST = 3 };
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[size] = '\0';
    char *at = strrchr(text, ')'), *save = NULL;
    if (!at)
        return false;
    int number = FIRST;
    for (char *word = strtok_r(at + 1, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (number == UTIME)
            *ret_ticks = strtoull(word, NULL, 10);
        else if (number == STIME)
            *ret_ticks += strtoull(word, NULL, 10);
        else if (number == THREADS)
            *ret_threads = (u32)strtoul(word, NULL, 10);
        number++;
    }
    return number > THREADS;
}

void run_say_progress(Run *run)
{
    u64 interval_ms = (u64)run->options->progress_interval_s * 1000, now = now_ms(), ticks = 0;
    u64 start = (u64)run->info.start_ms;
    u32 threads = 0;
    char line[160];

    if (!interval_ms || now < (run->progress_ms ? run->progress_ms : start) + interval_ms)
        return;
    run->progress_ms = now;
    if (!run->report || !read_process(run->os_pid, &ticks, &threads))
        return;
    double used_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    double wall_s = (double)(now - start) / 1000;
    snprintf(line, sizeof(line), "PROGRESS: U %.0fs, W %.0fs, %.1f%% CPU, #thr %u", used_s, wall_s,
             wall_s > 0 ? 100 * used_s / wall_s : 0, threads);
    report_note(run->report, line);
}
