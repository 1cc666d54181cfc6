// SPDX-License-Identifier: MIT
//
// Classic BPF as seccomp knows it: which programs the kernel takes, and what a
// program says about a call. Knows nothing of threads or filters.
#ifndef MUNINN_ENGINE_SECCOMP_PROGRAM_H
#define MUNINN_ENGINE_SECCOMP_PROGRAM_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/types.h"

#define PROGRAM_MAX 4096 // BPF_MAXINSNS

// True when the kernel would accept the program: every instruction known, every jump
// inside, no scratch word read before it was written. Only such a program may be run.
bool program_is_valid(const struct sock_filter *insns, u32 count);

// The value that the program returns. It ends: jumps go forward only.
u32 program_run(const struct sock_filter *insns, const struct seccomp_data *data);

#endif
