// SPDX-License-Identifier: MIT
//
// Around every call of the client: notices writes to files that it has code from.
#ifndef MUNINN_ENGINE_PERFORM_FILE_WRITES_H
#define MUNINN_ENGINE_PERFORM_FILE_WRITES_H

#include "base/types.h"

void file_writes_before(u64 nr, const u64 args[6]);
void file_writes_after(u64 nr, const u64 args[6], i64 result);

#endif
