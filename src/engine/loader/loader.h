// SPDX-License-Identifier: MIT
//
// Does for the client what execve does: maps its ELF file and its interpreter,
// moves the vdso near, and builds the stack that the entry point expects.
//
// What must stay true
//   L1  After loader_start() the vdso is the client's. The engine calls no function
//       of its own libc that goes through the vdso: clock_gettime, gettimeofday,
//       time, getcpu. It uses the system calls. Nor does it walk dl_iterate_phdr(), as
//       some unwinders do: the engine's ld.so still believes the vdso at its old place.
#ifndef MUNINN_ENGINE_LOADER_LOADER_H
#define MUNINN_ENGINE_LOADER_LOADER_H

#include "base/types.h"

// Loads the program and makes /proc/PID/{cmdline,environ,auxv,comm} the client's.
// argv and envp end with NULL. On failure one line on descriptor 2 says why.
bool loader_start(const char *exe_path, int argc, char **argv, char **envp, u64 *ret_entry,
                  u64 *ret_sp);

// The path that /proc/self/exe must show: absolute, without symbolic links.
const char *loader_exe_path(void);
// The size of the first thread's stack; 0: what the limit says. Set before loader_start().
extern u64 loader_stack_bytes;

#endif
