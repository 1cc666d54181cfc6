// SPDX-License-Identifier: MIT
//
// What talking to the monitor keeps in a thread.
#ifndef MUNINN_ENGINE_RELAY_RELAY_STATE_H
#define MUNINN_ENGINE_RELAY_RELAY_STATE_H

#include "base/types.h"
#include "wire/wire.h"

typedef struct RelayState {
    WireProducer wire;   // this thread's end of the wire; zero before its first record
    u32 number;          // the number that reports give the thread, from 1
    u32 errors_disabled; // >0: the client has asked for no reports
    u32 kicked;          // the monitor has a request; set by our handler (signal/sleep.c)
    u32 sleeps_in;       // while the request is answered: 1 + the number of the interrupted call
    u32 request_seen;    // the last request for every thread
    u32 answering;       // the request being answered; 0: a command of the client's own
} RelayState;

#endif
