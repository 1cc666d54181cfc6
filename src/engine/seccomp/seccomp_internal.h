// SPDX-License-Identifier: MIT
//
// What the files of seccomp/ share: the filter, and the raw calls that install one.
#ifndef MUNINN_ENGINE_SECCOMP_INTERNAL_H
#define MUNINN_ENGINE_SECCOMP_INTERNAL_H

#include "engine/seccomp/program.h"
#include "engine/seccomp/seccomp.h"

// Filters form a tree, as in the kernel: a thread points to its newest.
typedef struct SeccompFilter {
    struct SeccompFilter *older;
    struct SeccompFilter *next; // in the list of all filters, under thread_lock
    u32 flags;         // of the seccomp call that installed it
    bool by_prctl;     // installed by prctl: an older filter may allow only that
    bool has_listener; // its place-holder asks a listener
    u32 count;
    struct sock_filter insns[];
} SeccompFilter;

// Installs a filter in the kernel and returns the kernel's answer.
i64 install_in_kernel(const struct sock_filter *insns, u32 count, u32 flags, bool by_prctl);

// An equal filter on top of `older`, or a new one. NULL: no memory. thread_lock held.
SeccompFilter *filter_make(SeccompFilter *older, const SeccompFilter *model);

// Runs all filters, the newest first. Returns the strictest action; *ret_match is the filter that
// asked for it.
u32 filters_run(const SeccompFilter *newest, const struct seccomp_data *data,
                const SeccompFilter **ret_match);

// --- listener.c
// Room that a place-holder with a listener needs besides the program itself.
#define LISTENER_PROLOGUE_MAX 128
// Writes a program that allows calls from the engine's own code, and judges all other calls
// as `insns` do. Returns its length, or 0 if it would be too long.
u32 listener_program(const struct sock_filter *insns, u32 count, struct sock_filter *dst, u32 max);

#endif
