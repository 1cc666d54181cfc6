// SPDX-License-Identifier: MIT
//
// A block as text: the guest's instructions and the code emitted for them.
//
// What differs from run to run is named instead of printed: fields of the
// thread's context, gateways, exits, places of the block itself. Bytes that
// encode such things print as "..", so that the text depends on the guest code
// alone and tests/codegen can keep it.
#ifndef MUNINN_ENGINE_TRACE_LISTING_H
#define MUNINN_ENGINE_TRACE_LISTING_H

#include "engine/cache/cache.h"

// Takes one line without its newline.
typedef void ListingLineFn(const char *line);

// One guest instruction; returns its length, 0 when the bytes are none.
unsigned listing_guest(GuestAddr pc, const u8 *bytes, size_t max, ListingLineFn *put);

// The emitted code of a block, entry prefix and exit stubs included, with its
// marks as lines that begin with ';'. Engine lock held.
void listing_block(const Block *block, ListingLineFn *put);

#endif
