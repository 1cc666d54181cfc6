// SPDX-License-Identifier: MIT
//
// One line on a terminal that says what is being done, from half a second on. A thread
// draws it, so that it moves also while the work is in a call that reports nothing.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "inspect/heap/command.h"

static struct {
    pthread_t thread;
    bool is_running;
    const char *what;
    atomic_bool stop;
    atomic_uint permille; // 0: not known
} progress;

static void *draw(void *unused)
{
    enum { TICK_MS = 100, QUIET_TICKS = 5 };
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
    bool is_drawn = false;

    (void)unused;
    for (unsigned ticks = 0; !atomic_load(&progress.stop); ticks++) {
        unsigned permille = atomic_load(&progress.permille);
        if (ticks >= QUIET_TICKS && permille)
            fprintf(stderr, "\r%s: %u%% ", progress.what, permille / 10);
        else if (ticks >= QUIET_TICKS)
            fprintf(stderr, "\r%s: %u s ", progress.what, ticks * TICK_MS / 1000);
        is_drawn |= ticks >= QUIET_TICKS;
        nanosleep(&tick, NULL);
    }
    if (is_drawn)
        fputs("\r\x1b[K", stderr);
    return NULL;
}

void progress_begin(const char *what)
{
    if (progress.is_running || !isatty(STDERR_FILENO))
        return;
    progress.what = what;
    atomic_store(&progress.stop, false);
    atomic_store(&progress.permille, 0);
    progress.is_running = pthread_create(&progress.thread, NULL, draw, NULL) == 0;
}

void progress_set(u64 done, u64 total)
{
    if (total && done <= total)
        atomic_store(&progress.permille, (unsigned)((double)done / (double)total * 1000));
}

void progress_end(void)
{
    if (!progress.is_running)
        return;
    progress.is_running = false;
    atomic_store(&progress.stop, true);
    pthread_join(progress.thread, NULL);
}
