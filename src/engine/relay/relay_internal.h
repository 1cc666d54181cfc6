// SPDX-License-Identifier: MIT
#ifndef MUNINN_ENGINE_RELAY_INTERNAL_H
#define MUNINN_ENGINE_RELAY_INTERNAL_H

#include "engine/relay/relay.h"

typedef struct Relay {
    WireShared *shared; // NULL: no monitor, or not yet
    int life;           // hidden descriptor; -1 when the monitor is gone
    int attach;         // where a fork's child asks for a monitor of its own; -1: nowhere
    bool is_child;      // made by fork and without a monitor so far
    u64 fork_stamp;     // when the last process with a monitor began to make this one
    bool is_silent;     // --child-silent-after-fork, in a child
    bool takes_kicks;   // our handler of kicks is in place
    bool is_lost;       // there was a monitor, and it has died
    int error_exitcode; // of a run whose judgement is lost; 0: the client's own
    u32 alarm_seen;     // atomic
    u64 alarm_said;     // bytes of the alarms that have been said
    u32 threads;        // numbers given to threads so far
    i64 old_guard;      // `guard` of the program that this one has replaced by execve
    i64 guard;          // the process between the monitor and us; 0: there is none
} Relay;

extern Relay relay;

// The producer of this thread, ready for use; NULL when there is no monitor. In a
// fork's child the first call asks for one.
WireProducer *relay_producer(ThreadCtx *ctx);
// To be called when the monitor does not answer any more: says so once.
void relay_lost(void);
// True if the monitor has died.
bool relay_check(void);

// Sends the monitor the descriptions of all kinds of findings that this tool can make.
void relay_put_descriptions(WireProducer *producer);

// Forgets the findings made so far: they are the parent's.
void relay_findings_reset(void);

#endif
