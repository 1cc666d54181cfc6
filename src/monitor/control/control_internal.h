// SPDX-License-Identifier: MIT
//
// What the two ends of a control socket agree on.
#ifndef MUNINN_MONITOR_CONTROL_INTERNAL_H
#define MUNINN_MONITOR_CONTROL_INTERNAL_H

#include "monitor/control/control.h"

// A connection carries one packet with the command, then answers, each packet
// with its kind in the first byte.
enum {
    PACKET_TEXT = 't', // a piece of the answer
    PACKET_END = 'e',  // one more byte: the status
};
enum {
    COMMAND_BYTES_MAX = 4000,
    PACKET_BYTES_MAX = 32 * 1024,
};

// ---------------------------------------------------------------------- places

// The directory in which to make a socket: its descriptor, or -1 with *ret_error.
int place_make(const char **ret_error);

// Calls fn for each directory that may hold sockets of ours, until it returns true.
typedef bool PlaceFn(int directory, void *arg);
bool place_each(PlaceFn *fn, void *arg);

// A PlaceFn that removes the sockets of monitors that have been killed.
bool place_sweep(int directory, void *unused);

// A socket's name: the client's pid, and that of the monitor, since a pid goes on after exec.
void place_name(char ret_name[32], i32 pid, i32 monitor);
bool place_parse(const char *name, i32 *ret_pid, i32 *ret_monitor);

// Connects to the monitor of `pid`. -1: there is none.
int place_connect(i32 pid);
// The address of a socket in the directory, which nobody can exchange for another meanwhile.
// Returns its length.
int place_address(int directory, const char *name, void *ret_address);

// ------------------------------------------------------------------- the client

// The path behind /proc/PID/exe is an engine's.
bool ps_is_engine(i32 pid);

#endif
