// SPDX-License-Identifier: MIT
//
// Extended processor state in the standard XSAVE format: what the processor has of it, and its
// shapes in signal frames.
#ifndef MUNINN_ENGINE_XSTATE_XSTATE_H
#define MUNINN_ENGINE_XSTATE_XSTATE_H

#include "base/types.h"

#define XSTATE_PKRU (1ull << 9)
#define XSTATE_MAGIC2_BYTES 4
#define XSTATE_MAX_BYTES (16 * KiB)

void xstate_init(void); // asks the processor; may be called again
u64 xstate_size(void);  // bytes of ThreadCtx.xsave
u64 xstate_mask(void);  // XCR0: what XSAVE and XRSTOR handle
void xstate_reset(u8 *area); // the state of a new process

// --- signal frames
u64 xstate_frame_size(void); // without the trailing magic
u64 xstate_frame_features(void);
// Fills `area` from the kernel's own signal frame.
void xstate_from_host_frame(u8 *area, const u8 *fpregs);
// Makes the copy of a state into what the kernel puts on a client's stack; the
// buffer holds xstate_frame_size() + XSTATE_MAGIC2_BYTES bytes.
void xstate_to_client_frame(u8 *frame, const u8 *area);
// Reads a client's frame, trusting nothing. False: the kernel would refuse it.
bool xstate_from_client_frame(u8 *area, GuestAddr fpstate);
// The gateways neither save nor restore PKRU: it stays in the processor (base/pkru_x64.h). From
// there into the area, for a frame; from an area into it.
void xstate_keep_pkru(u8 *area);
void xstate_put_pkru(const u8 *area);

#endif
