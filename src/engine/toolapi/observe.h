// SPDX-License-Identifier: MIT
//
// More that a tool may insert into blocks, without a shadow: increments of a thread's table behind
// gs, operations on a thread's words (ToolThread.tool.slot), tests of them, records of memory
// accesses, and calls that get more arguments than those of toolapi.h. The code of each function
// stands before the current instruction, or behind it if the function is called in Tool.insn_done.
// It leaves registers and flags as they were.
#ifndef MUNINN_ENGINE_TOOLAPI_OBSERVE_H
#define MUNINN_ENGINE_TOOLAPI_OBSERVE_H

#include "engine/toolapi/toolapi.h"

// Adds `amount` to the word `index` of the table at thread->engine_gs.
void tool_bump(ToolBlock *block, u32 index, i32 amount);

typedef enum ToolUpdate { TOOL_ADD, TOOL_STORE, TOOL_MAX, TOOL_MIN } ToolUpdate;
typedef enum ToolSource {
    TOOL_CONSTANT, // value, 32 bits with a sign
    TOOL_REGISTER, // general register `value`
    TOOL_ADDRESS,  // the address of `access`
} ToolSource;
// tool.slot[slot] := tool.slot[slot] UPDATE source. False: the access has no address.
bool tool_slot_update(ToolBlock *block, unsigned slot, ToolUpdate update, ToolSource source,
                      i64 value, const ToolAccess *access);

// Code that is inserted between tool_slot_if() and tool_end_if() runs only if the unsigned
// comparison of tool.slot[slot] with the constant is true.
typedef enum ToolCondition { TOOL_EQUAL, TOOL_NOT_EQUAL, TOOL_BELOW, TOOL_NOT_BELOW } ToolCondition;
typedef struct ToolTest {
    CodePtr skip;
    bool saves_flags;
} ToolTest;
ToolTest tool_slot_if(ToolBlock *block, unsigned slot, ToolCondition condition, i32 constant);
// The same, if tool.slot[slot] + `bytes` is above tool.slot[slot + 1].
ToolTest tool_slot_if_full(ToolBlock *block, unsigned slot, i32 bytes);
void tool_end_if(ToolBlock *block, ToolTest test);

// Writes the record {u64 address, u64 info} at tool.slot[slot] + offset, then adds `advance` to the
// slot. False: the access has no address.
bool tool_record_access(ToolBlock *block, unsigned slot, const ToolAccess *access, u64 info,
                        i32 offset, i32 advance);

// The same for several records of a straight run, more cheaply: from the first to the last of them
// two registers that no instruction of the run uses are held, `pointer` at the place of the first
// record. There must be no call and no exit meanwhile.
typedef struct ToolHold {
    u8 pointer, scratch;
} ToolHold;
// The registers that may be held: all but rax, rcx, rdx, rsp and r11.
#define TOOL_HOLDABLE 0xf7e8u
void tool_hold(ToolBlock *block, ToolHold hold, unsigned slot, i32 advance);
void tool_record_held(ToolBlock *block, ToolHold hold, const ToolAccess *access, u64 info,
                      i32 offset);
void tool_release(ToolBlock *block, ToolHold hold);

// Each of these tells what the next call gets as its address: the address of the access; the value
// of a slot; 1 or 0, whether the current instruction, a conditional branch, will be taken; the
// target of the current instruction, an indirect branch. False: the value is not to be had, and the
// tool must not insert the call.
bool tool_call_with_access(ToolBlock *block, const ToolAccess *access);
void tool_call_with_slot(ToolBlock *block, unsigned slot);
bool tool_call_with_taken(ToolBlock *block);
bool tool_call_with_target(ToolBlock *block);

// tool_store_gprs(): before a call, stores all general registers to thread->gpr. tool_load_gprs():
// behind it, loads them from there.
void tool_store_gprs(ToolBlock *block);
void tool_load_gprs(ToolBlock *block);
// For a function that a block calls: the client's flags. It may change the status flags among them.
u64 *tool_call_flags(ToolThread *thread);

// A number for the block that is being made, below TOOL_BLOCK_NUMBERS. No other block that a thread
// may still be in has this number.
u32 tool_block_number(const ToolBlock *block);
#define TOOL_BLOCK_NUMBERS (1u << 21 | 1)

#endif
