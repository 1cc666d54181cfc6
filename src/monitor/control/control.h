// SPDX-License-Identifier: MIT
//
// Talking to a program that runs: a socket that only its user can open, beside every
// monitor, and the two subcommands that find it.
//
//   muninn ctl ──▶ socket ──▶ control_turn() ──▶ ControlRunFn ──▶ control_say(), control_end()
//
// Files
//   place.c   the directory of the sockets: made, checked, listed
//   server.c  the monitor's end
//   ctl.c     `muninn ctl`
//   ask.c     the same for a program with threads
//   ps.c      `muninn ps`
//
// What must stay true
//   L1  A socket is made, and looked for, only in a directory that is this user's, no
//       symbolic link, and closed to all others. Both ends check the other's user.
//   L2  The monitor waits for no connection: what is not read is kept, up to a limit, and
//       a connection that goes beyond it is cut.
//   L3  What comes through a socket is hostile: of any size, with any bytes.
#ifndef MUNINN_MONITOR_CONTROL_CONTROL_H
#define MUNINN_MONITOR_CONTROL_CONTROL_H

#include <poll.h>

#include "base/types.h"

// ------------------------------------------------------------------- commands

typedef enum ControlCommandId {
#define COMMAND(ID, name, old_name, arguments, where, help) CONTROL_##ID,
#include "monitor/control/commands.def"
    CONTROL_COMMANDS
} ControlCommandId;

typedef enum ControlWhere {
    CONTROL_IN_MONITOR,
    CONTROL_IN_ENGINE,
    CONTROL_IN_THREADS
} ControlWhere;

typedef struct ControlCommand {
    const char *name, *old_name, *arguments, *help;
    ControlWhere where;
} ControlCommand;

extern const ControlCommand control_commands[CONTROL_COMMANDS];

// Which command a line is; CONTROL_COMMANDS: none of these. *ret_arguments is what stands
// behind it.
ControlCommandId control_find(const char *line, const char **ret_arguments);

// ----------------------------------------------------------------- the server

typedef struct Control Control;
typedef struct ControlCall ControlCall; // a command that is being answered

// Told a command, without control characters. It answers by control_say() and, now or later,
// control_end().
typedef void ControlRunFn(void *arg, ControlCall *call, const char *line);
// The caller has gone: the call must not be used any more.
typedef void ControlGoneFn(void *arg, ControlCall *call);

// NULL when there is no place for a socket: *ret_error says why.
Control *control_open(i32 pid, ControlRunFn *run, ControlGoneFn *gone, void *arg,
                      const char **ret_error);
// Ends every call, as failed, and removes the socket.
void control_close(Control *control, const char *farewell);
// In a process that only inherited it.
void control_forget(Control *control);

enum { CONTROL_CALLS_MAX = 16, CONTROL_FDS_MAX = CONTROL_CALLS_MAX + 1 };
// What to wait for; returns how many. Then, with the same array after poll():
size_t control_fds(const Control *control, struct pollfd fds[CONTROL_FDS_MAX]);
void control_turn(Control *control, const struct pollfd *fds, size_t count);

void control_say(ControlCall *call, const char *text, size_t size);
void control_printf(ControlCall *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void control_end(ControlCall *call, int status); // the exit status of `muninn ctl`

// ---------------------------------------------------------------------- asking

// Sends the command to the monitor of `pid` and hands the answer over, in pieces. Returns the
// status; -1: there is no monitor, or it gave no answer within the time (0: for ever).
typedef void ControlAnswerFn(void *arg, const char *text, size_t size);
int control_ask(i32 pid, const char *command, int timeout_ms, ControlAnswerFn *fn, void *arg);
// The process that monitors `pid`; 0: there is none.
i32 control_find_monitor(i32 pid);

// ------------------------------------------------------------- the subcommands

// `muninn ps` and `muninn ctl`.
int control_ps_main(int argc, char **argv);
int control_ctl_main(int argc, char **argv);

// What any other subcommand needs of them. Sends the command to the monitor of `pid` and hands
// the answer over. Returns the status, -1: there is no monitor, or it gave no answer within
// the time (0: for ever).
typedef void AnswerFn(void *arg, const char *text, size_t size);
int ctl_ask(i32 pid, const char *command, int timeout_ms, AnswerFn *fn, void *arg);
// Says on standard error, in the name of the subcommand, why nobody answered.
void ctl_explain_silence(const char *subcommand, i32 pid);

#endif
