// SPDX-License-Identifier: MIT
//
// What the client sees of itself in /proc. Most of it the kernel already shows as
// the client's (see loader/identity.c); the rest is steered here: `exe` leads to
// the client's program, `maps` and `smaps` list its own mappings, `stat`, `statm`
// and `status` add those up, `fd` and `fdinfo` lack the engine's descriptors, and
// where the kernel refused to be told, `cmdline`, `environ` and `auxv` are made from
// the client's stack.
//
// What must stay true
//   V1  A path that does not lead into /proc of this process costs one read of its
//       first eight bytes.
//   V2  What cannot be read or understood goes to the kernel as it is, so that the
//       kernel says what is wrong with it.
#ifndef MUNINN_ENGINE_PROCVIEW_PROCVIEW_H
#define MUNINN_ENGINE_PROCVIEW_PROCVIEW_H

#include "base/types.h"

// After the loader: `sp` is the client's first stack pointer.
void procview_init(GuestAddr sp);

// A system call on a path, as it is to be made.
typedef struct ProcCall {
    u64 args[6];
    i64 result;
    char path[32];     // args may point here
    bool counts_hidden; // its answer counts descriptors, those of the engine included
} ProcCall;

// Looks at a call that has a row in path_calls.def. True when it is answered:
// `result`. Otherwise the kernel is to be asked with `args`, which may differ from
// the client's.
bool procview_intercept(u64 nr, const u64 args[6], ProcCall *ret_call);

// After the kernel has answered a call with `counts_hidden`: corrects the answer.
void procview_uncount(u64 nr, const ProcCall *call);

// Before a read at position 0 of a file that was made here, its text is made again. `at` is
// the position, or -1: that of the descriptor. Only while procview_open_files.
extern u32 procview_open_files;
void procview_refresh(int fd, i64 at);

// getdents or getdents64 has put `size` bytes at `buffer`. Takes the engine's
// descriptors out and returns what is left; 0 means that the call has to be repeated.
i64 procview_filter_listing(u64 nr, int fd, GuestAddr buffer, i64 size);

// For execve: whether this path means the client's own program (loader_exe_path()).
bool procview_names_exe(const char *path);

#endif
