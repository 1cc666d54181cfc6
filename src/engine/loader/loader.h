// SPDX-License-Identifier: MIT
//
// Does for the client what execve does: maps its ELF file and its interpreter,
// moves the vdso near, and builds the stack that the entry point expects.
//
// What must stay true
//   L1  After loader_start() the vdso is the client's. Where it was, the engine's own libc, and
//       that of loaded tools, finds an image like it whose functions make system calls
//       (vdso_own.c). The engine uses the system calls at once: they need no such image.
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
