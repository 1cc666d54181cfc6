// SPDX-License-Identifier: MIT
//
// More that a tool may insert into blocks, without a shadow: increments of a thread's table behind
// gs, operations on a thread's words (ToolThread.tool.slot), tests of them, records of memory
// accesses, and calls that get more than toolapi.h's do. All of it stands before the current
// instruction, or behind it in Tool.after, and leaves registers and flags as they were.
#ifndef MUNINN_ENGINE_TOOLAPI_OBSERVE_H
#define MUNINN_ENGINE_TOOLAPI_OBSERVE_H

#include "engine/toolapi/toolapi.h"

// The word `index` of the table at thread->engine_gs grows.
void tool_bump(ToolBlock *block, u32 index, i32 amount);

typedef enum ToolUpdate { TOOL_ADD, TOOL_STORE, TOOL_MAX, TOOL_MIN } ToolUpdate;
typedef enum ToolSource {
    TOOL_CONSTANT, // value, 32 bits with a sign
    TOOL_REGISTER, // general register `value`
    TOOL_ADDRESS,  // of `access`
} ToolSource;
// tool.slot[slot] := tool.slot[slot] UPDATE source. False: the access has no address.
bool tool_slot_update(ToolBlock *block, unsigned slot, ToolUpdate update, ToolSource source,
                      i64 value, const ToolAccess *access);

// What is inserted between the two runs only if the comparison of tool.slot[slot], unsigned, with
// the constant is true.
typedef enum ToolCondition { TOOL_EQUAL, TOOL_NOT_EQUAL, TOOL_BELOW, TOOL_NOT_BELOW } ToolCondition;
typedef struct ToolTest {
    CodePtr skip;
    bool saves_flags;
} ToolTest;
ToolTest tool_slot_if(ToolBlock *block, unsigned slot, ToolCondition condition, i32 constant);
// The same where tool.slot[slot] + `bytes` is above tool.slot[slot + 1].
ToolTest tool_slot_if_full(ToolBlock *block, unsigned slot, i32 bytes);
void tool_end_if(ToolBlock *block, ToolTest test);

// The record {u64 address, u64 info} at tool.slot[slot] + offset is written; then the slot moves on
// by `advance` bytes. False: the access has no address.
bool tool_record_access(ToolBlock *block, unsigned slot, const ToolAccess *access, u64 info,
                        i32 offset, i32 advance);

// The same for several records of a straight run, more cheaply: from the first to the last of them
// two registers that no instruction of the run uses are held, `pointer` at the place of the first
// record. There must be no call and no exit meanwhile.
typedef struct ToolHold {
    u8 pointer, scratch;
} ToolHold;
// Registers that may be held are among these.
#define TOOL_HOLDABLE 0xf7e8u // not rax, rcx, rdx, rsp, r11
void tool_hold(ToolBlock *block, ToolHold hold, unsigned slot, i32 advance);
void tool_record_held(ToolBlock *block, ToolHold hold, const ToolAccess *access, u64 info,
                      i32 offset);
void tool_release(ToolBlock *block, ToolHold hold);

// What the next call gets as its address: that of the access; what was stored in a slot; whether
// the conditional branch that is the current instruction will be taken; where an indirect branch
// will lead. False: that cannot be told, and there must be no call.
bool tool_call_with_access(ToolBlock *block, const ToolAccess *access);
void tool_call_with_slot(ToolBlock *block, unsigned slot);
bool tool_call_with_taken(ToolBlock *block);
bool tool_call_with_target(ToolBlock *block);

// Around a call: all general registers are in thread->gpr; and come from there.
void tool_store_gprs(ToolBlock *block);
void tool_load_gprs(ToolBlock *block);
// In a function that a block calls: the client's flags, of which it may change the status flags.
u64 *tool_call_flags(ToolThread *thread);

// A number for the block that is being made: below TOOL_BLOCK_NUMBERS, another one than any block
// has that a thread may still be in.
u32 tool_block_number(const ToolBlock *block);
#define TOOL_BLOCK_NUMBERS (1u << 21 | 1)

#endif
