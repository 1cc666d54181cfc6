// SPDX-License-Identifier: MIT
//
// Answers and those who compute them. A request that is being computed, or was, is joined,
// not repeated; whoever waits too long is told to ask again while the work goes on.
#ifndef MUNINN_INSPECT_HTTP_JOBS_H
#define MUNINN_INSPECT_HTTP_JOBS_H

#include "inspect/http/viewer.h"

typedef struct Answer {
    // Set once, before `done`.
    unsigned status;
    const char *type;
    char *body;
    size_t size;
    u64 tag; // of the content, for ETag
    _Atomic bool done;
    _Atomic u32 progress; // in thousandths
} Answer;

typedef struct Jobs Jobs;

Jobs *jobs_start(Viewer *viewer);
// No job begins any more; returns when the running ones have ended.
void jobs_stop(Jobs *jobs);

// The answer, which may not be done after wait_ms. NULL: too much is asked at once. It is
// the caller's until jobs_release().
Answer *jobs_ask(Jobs *jobs, const Request *request, u32 wait_ms);
void jobs_release(Jobs *jobs, Answer *answer);

#endif
