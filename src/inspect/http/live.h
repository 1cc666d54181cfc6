// SPDX-License-Identifier: MIT
//
// Programs that still run: their files are looked at four times a second, streams hear of
// what has changed, and the two actions go through the program's control socket.
#ifndef MUNINN_INSPECT_HTTP_LIVE_H
#define MUNINN_INSPECT_HTTP_LIVE_H

#include <sys/types.h>

#include "inspect/http/viewer.h"

typedef struct Live Live;

Live *live_start(Viewer *viewer);
// Every stream ends; to be called before the server's threads are waited for.
void live_end_streams(Live *live);
void live_stop(Live *live);
// The program `pid` has a monitor that answers.
bool live_is_running(i32 pid);

// The path of the recording that the monitor of `pid` is writing, to be freed; NULL:
// *ret_error (to be freed) says why there is none.
char *live_find_recording(i32 pid, char **ret_error);

// A stream of server-sent events; NULL: there are too many. file_id U32_MAX: all.
typedef struct LiveStream LiveStream;
LiveStream *live_stream_new(Live *live, u32 file_id);
// Waits for something to tell, at most a quarter of a second, and puts as much as fits.
// Returns the size; 0: nothing; -1: the server ends.
ssize_t live_stream_read(LiveStream *stream, char *buffer, size_t size);
void live_stream_free(LiveStream *stream);

// POST /api/action.
void live_answer_action(Call *call);

#endif
