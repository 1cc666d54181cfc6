// SPDX-License-Identifier: MIT
//
// What the files of descriptors/ share.
#ifndef MUNINN_ENGINE_DESCRIPTORS_DESCRIPTORS_INTERNAL_H
#define MUNINN_ENGINE_DESCRIPTORS_DESCRIPTORS_INTERNAL_H

#include "engine/descriptors/descriptors.h"

// Where hidden numbers start. The kernel sizes a descriptor table by its highest
// number and copies it at every fork: this high costs 64 KiB, 65536 would cost 512.
#define HIDDEN_START 8000
#define HIDDEN_ROOM 192 // numbers above it that are first asked for
#define HIDDEN_MAX 16   // descriptors at a time

// Finds out which arguments of which calls are descriptors. The first call does
// it, before anything is hidden; the registry's lock is held.
void calls_learn(void);

// Registers `fd`, which is ours and at the right place already.
bool registry_adopt(int fd, DescriptorMoved *moved);

// Gives the number of a hidden descriptor to the client: it moves, not below `from`
// if that can be had; where no number is left at all, the engine does without it.
// The old number stays open, for the caller to replace or close. False when the
// table is not shared (F3).
bool registry_vacate(int fd, int from);

// The same where every number below `from` is wanted: a descriptor that stays below only changes
// places, and a call that needs two numbers would never get them.
bool registry_expel(int fd, int from);
bool registry_may_change(void);

// The lowest hidden number that is not below `from`; INT32_MAX when there is none.
i32 registry_lowest_from(i32 from);

void registry_after_fork(void);

// The log may be without a descriptor, see registry_vacate(). True when the client's
// close of `fd`, which is where the log was opened from, makes it ours instead.
bool log_takes_over(int fd);
// A number has become free: the log may have one again.
void log_regain(void);

#endif
