// SPDX-License-Identifier: MIT
//
// Between the files of gateway/: the addresses of the emitted gateways.
#ifndef MUNINN_ENGINE_GATEWAY_INTERNAL_H
#define MUNINN_ENGINE_GATEWAY_INTERNAL_H

#include "engine/gateway/gateway.h"

typedef i64 GatewaySyscallFn(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);

enum { GATEWAY_STORES = 6 }; // up to 32 bytes
enum { TOOL_CALLS = 3 };

typedef struct Gateways {
    void (*enter)(CodePtr target); // from C into the cache, full state from thread_ctx
    GatewaySyscallFn *syscall;

    CodePtr entering, entering_end;   // windows, see GatewayPlace
    CodePtr resuming, resuming_end;
    CodePtr syscall_begin, syscall_insn;
    CodePtr abort_entering, abort_resuming, restart, taken_out;

    CodePtr leave[EXIT_REASON_COUNT]; // jump here to leave the cache
    CodePtr lookup_miss;              // jump here with rcx = guest target, see emit_lookup()
    CodePtr return_by_table;          // jump here with the target popped into r11, which is spilled
    CodePtr return_miss;              // jump here with the target at [rsp-8], rcx spilled; or r11,
                                      // where flags count as dead (TOOL_LOOSE_FLAGS)
    CodePtr stores, stores_end;
    CodePtr store_map;                // a word
    CodePtr store[GATEWAY_STORES];    // of 1 << i bytes
    CodePtr far_return_miss;          // as return_miss, with rcx spilled in any case
    CodePtr version_guard, version_exit, version_indirect, version_miss;
    CodePtr lookup, lookup_end;       // the window that holds these four

    // Calls of tools: [1] where flags are dead, [2] by a fast step (GatewayCall.brief).
    CodePtr tool_call[TOOL_CALLS], tool_return[TOOL_CALLS], tool_return_end[TOOL_CALLS];
    CodePtr quick_careful_end; // from the end of the second on: to the first

    u64 xsave_mask; // components the engine saves
} Gateways;

extern Gateways gateway;

#endif
