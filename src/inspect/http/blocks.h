// SPDX-License-Identifier: MIT
//
// The blocks that were live at a moment, by a walk through the events before it.
#ifndef MUNINN_INSPECT_HTTP_BLOCKS_H
#define MUNINN_INSPECT_HTTP_BLOCKS_H

#include "inspect/http/viewer.h"

typedef struct LiveBlock {
    u64 address, size, usable, born_ns;
    u32 site;
} LiveBlock;

typedef struct LiveBlocks {
    LiveBlock *blocks; // of all sites, by address
    u32 count;
    u64 at_ns;
} LiveBlocks;

enum { LIVE_BLOCKS_MAX = 4 << 20 };

// At the end of the selection, or at the peak if it names no time; the memo's.
const LiveBlocks *chosen_blocks(Call *call, const Chosen *chosen);
// At the end of the run; the memo's.
const LiveBlocks *view_leftovers(Call *call, View *view);
// Of each site whether its blocks are selected, to be freed.
u8 *chosen_sites(Call *call, const Chosen *chosen, const LiveBlocks *blocks);

#endif
