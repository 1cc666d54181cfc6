// SPDX-License-Identifier: MIT
//
// What the client's seccomp keeps in a thread.
#ifndef MUNINN_ENGINE_SECCOMP_SECCOMP_STATE_H
#define MUNINN_ENGINE_SECCOMP_SECCOMP_STATE_H

#include "base/types.h"

struct SeccompFilter;

typedef struct SeccompState {
    struct SeccompFilter *filter; // the newest filter; atomic, others may set it (TSYNC)
    u32 strict;                   // only read, write, exit and sigreturn
} SeccompState;

#endif
