// SPDX-License-Identifier: MIT
//
// Resource limits that would hit the engine together with the client. RLIMIT_AS and
// RLIMIT_DATA are kept here as the client knows them and enforced by aspace/ on the
// client's own mappings; the kernel's are raised as far as we may. (RLIMIT_FSIZE is the
// kernel's: base/own_file.h steps around it. Nothing of ours scales with RLIMIT_NOFILE.)
//
// What must stay true
//   L1  getrlimit, setrlimit and prlimit64 on this process show and set the client's
//       values of RLIMIT_AS and RLIMIT_DATA.
//   L2  When a program is executed the kernel has the client's values.
#ifndef MUNINN_ENGINE_LIMITS_LIMITS_H
#define MUNINN_ENGINE_LIMITS_LIMITS_H

#include "base/types.h"
#include "engine/ctx/ctx.h"

// First of all: takes over what the process inherited and raises the kernel's. Returns
// how many bytes of address space the engine and the client have together; ~0: no limit.
u64 limits_init(void);

// How much of `wanted` bytes the code cache may have when `room` is all there is.
u64 limits_cache_size(u64 wanted, u64 room);

// getrlimit, setrlimit or prlimit64. False: the kernel is to answer it as it is.
bool limits_call(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result);

// Around an execve: the kernel's limits are the client's, and back when it has failed.
// A hard limit that the client has lowered for itself cannot come back unless it is
// privileged, so what is sure to fail is best found out before.
bool limits_matter_to_exec(const ThreadCtx *ctx);
void limits_prepare_exec(const ThreadCtx *ctx);
void limits_exec_failed(void);

// What the client has for one of the two, for /proc/self/limits: in bytes, ~0 for none.
void limits_of_client(const ThreadCtx *ctx, bool is_data, u64 *ret_soft, u64 *ret_hard);

#endif
