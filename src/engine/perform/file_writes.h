// SPDX-License-Identifier: MIT
//
// Called before and behind every system call of the client's: notices writes to files from which
// the client has mapped code.
#ifndef MUNINN_ENGINE_PERFORM_FILE_WRITES_H
#define MUNINN_ENGINE_PERFORM_FILE_WRITES_H

#include "base/types.h"

void file_writes_before(u64 nr, const u64 args[6]);
void file_writes_after(u64 nr, const u64 args[6], i64 result);

#endif
