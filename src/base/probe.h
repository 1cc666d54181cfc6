// SPDX-License-Identifier: MIT
//
// How long a few instructions take on this processor, for what no processor tells of itself.
#ifndef MUNINN_BASE_PROBE_H
#define MUNINN_BASE_PROBE_H

#include "base/types.h"

// Ticks of the time-stamp counter that one call takes: the least of some, since an interrupt is in
// few of them.
u64 probe_ticks(void (*code)(void));

#endif
