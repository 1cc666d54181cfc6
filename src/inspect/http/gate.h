// SPDX-License-Identifier: MIT
//
// Connections in front of the server. One thread accepts them, waits until a whole request head
// has arrived, and only then gives them to the library, which has a thread for each: whoever
// connects and says nothing, or says it a byte at a time, costs a descriptor for some seconds and
// nobody else his turn.
//
//   accept ─▶ waiting for a head ─▶ ready, in a queue ─▶ admitted ─▶ closed
//               10 s; the oldest goes    20 s; then 503     a deadline for each step;
//               when a new one has no                       an idle one goes when
//               place                                       a ready one has no place
//
// What must stay true
//   G1  Every connection has a deadline at any time, but for streams of events, of which there are
//       few (live.h) and whose writes the library gives a limit.
//   G2  A connection is told why it ends if it has said anything, or has to go for another one.
#ifndef MUNINN_INSPECT_HTTP_GATE_H
#define MUNINN_INSPECT_HTTP_GATE_H

#include "base/types.h"

enum {
    GATE_WAITING_MAX = 256,  // without a head, or ready
    GATE_ADMITTED_MAX = 64,  // that the library has
    GATE_HEAD_BYTES = 32768, // request line and headers
};

typedef struct Gate Gate;
// A connection that was admitted.
typedef struct Admitted Admitted;

// Takes the socket over: the library's from now on. False: it could not, and has closed it.
typedef bool GateAdmitFn(void *arg, int socket);

// NULL: there is no memory for it. `listener` must not block; it stays the caller's.
Gate *gate_new(int listener, GateAdmitFn *admit, void *arg);
// Connections are accepted from now on. False: there can be no thread for it.
bool gate_start(Gate *gate);
// No connection is admitted any more; those that wait are closed. The gate stays for those that
// were admitted, until gate_free().
void gate_stop(Gate *gate);
void gate_free(Gate *gate);

// From the library's threads.
Admitted *gate_find(Gate *gate, int socket); // of a socket that was just admitted; NULL: it is none
void gate_step(Gate *gate, Admitted *connection, u32 ms); // it has so long from now on; 0: no limit
void gate_idle(Gate *gate, Admitted *connection); // its answer was sent, another request may come
void gate_closed(Gate *gate, Admitted *connection);

#endif
