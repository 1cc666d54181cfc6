// SPDX-License-Identifier: MIT
//
// One guest instruction, as far as the translator needs to know it.
//
// Zydis decodes; an Insn keeps what matters in 64 bytes, because a block holds
// dozens of them and most instructions are only copied. The lowering of each
// mnemonic comes from ops.def. Zydis' answers are remembered by the bytes that decide them
// (shape.h), so that decode_shared() seldom asks Zydis. A caller that needs all operands asks
// Zydis again through decode_operands().
#ifndef MUNINN_ENGINE_DECODE_DECODE_H
#define MUNINN_ENGINE_DECODE_DECODE_H

#include <Zydis/Zydis.h>

#include "base/types.h"

// How an instruction is brought into the cache.
typedef enum Lowering {
    LOWER_COPY = 0, // copied, with its memory operand rewritten if needed (see MemoryForm)
    LOWER_JCC,
    LOWER_LOOP,     // loop, loope, loopne, jrcxz, jecxz
    LOWER_JMP,      // direct
    LOWER_CALL,     // direct
    LOWER_JMP_INDIRECT,
    LOWER_CALL_INDIRECT,
    LOWER_RET,
    LOWER_SYSCALL,
    LOWER_READ_BASE,  // rdfsbase, rdgsbase
    LOWER_WRITE_BASE, // wrfsbase, wrgsbase
    LOWER_XBEGIN,     // transactions always abort
    LOWER_POPF,       // performed by C if it sets the trap flag
    LOWER_REQUEST,    // the magic sequence of a client request, 19 bytes as one instruction
    LOWER_EMULATE,    // performed by C: far transfers, traps, loads of segment registers, …
    LOWER_BRANCH,     // in ops.def only: jmp and call, told apart by their opcode
    LOWER_COUNT
} Lowering;

typedef enum MemoryForm {
    MEMORY_PLAIN,    // no memory operand, or one that means the same at another pc
    MEMORY_RIP,      // rip-relative
    MEMORY_SEGMENT,  // explicit operand through fs: or gs:
    MEMORY_SEGMENT_WHOLE, // the same, in a form that needs the segment base in hardware
} MemoryForm;

// What the instruction behind the preamble of a client request asks for
// (request/request.h).
typedef enum RequestKind {
    REQUEST_CALL,        // xchg rbx, rbx: rdx = request({number, arguments} at rax), default rdx
    REQUEST_GET_ORIGINAL, // xchg rcx, rcx: rax = the function being wrapped by the client
    REQUEST_CALL_ORIGINAL, // xchg rdx, rdx: call rax, interceptions aside
    REQUEST_NOTHING,     // xchg rdi, rdi: only for developers of the incumbent
} RequestKind;

// The most bytes that decode_insn() looks at: more than any instruction has.
#define DECODE_BYTES_MAX 19

typedef struct Insn {
    GuestAddr pc;
    const u8 *bytes;   // the bytes that it was decoded from; in a block, a copy (Builder.taken)
    GuestAddr target;  // of a direct branch; address of a rip-relative operand
    const ZydisAccessedFlags *flags; // NULL: it touches no flag
    const struct InsnShape *shape;   // NULL: unknown; set by decode_shared(), valid under the lock
    u16 mnemonic;      // ZydisMnemonic
    u8 len;
    u8 lowering;       // Lowering
    u8 memory;         // MemoryForm
    u8 segment;        // the segment prefix byte, 0x64 or 0x65; 0 without
    u8 modrm_at;       // offsets into bytes; 0 when absent
    u8 disp_at;
    u8 encoding;       // ZydisInstructionEncoding
    u8 condition;      // low nibble of a jcc
    u16 pop_bytes;     // ret imm16
    u8 request;        // RequestKind, of LOWER_REQUEST
    u8 decided_by;     // how many bytes, from bytes[0] on, decided what it is: len, or more if it
                       // could have been the begin of a client request
} Insn;

#define INSN_NO_REG 16

// Where an operand is.
typedef struct InsnAddress {
    u8 base, index; // general registers, or INSN_NO_REG
    u8 scale;
    u8 segment;     // 0x64 or 0x65 if the base of fs or gs is added, else 0
    bool is_rip;    // disp counts from the end of the instruction
    bool is_narrow; // the address is 32 bits wide
    bool is_hidden; // of an operand that assemblers do not write, such as push's
    bool is_one;    // a single address; false: a vector of addresses
    i64 disp;
} InsnAddress;

// An access to memory.
typedef struct InsnAccess {
    InsnAddress address;
    u32 size_bytes; // of one element; 0: varies at run time (xsave and the like)
    bool reads, writes;
    u8 operand;     // which operand of the instruction it is
    bool is_plain;  // one address, neither repeated nor masked
} InsnAccess;

// What an instruction does with general registers. Operands count in Zydis' order.
typedef struct InsnForm {
    u16 gprs_used;    // bit r: general register r is read, written or used in an address
    u16 gprs_written; // bit r: general register r is written
    u8 dst, src;      // the first and second operand if they are 64-bit registers, or INSN_NO_REG
    u8 lea_base;      // of the address that lea computes
    bool lea_indexed;
    bool has_imm;     // the second operand is a constant
    bool writes_dst;
    bool writes_rsp;  // by an operand that assemblers write
    bool is_repeated; // a string instruction with a repeat prefix
} InsnForm;

void decode_init(void);

// Decode as AMD's and Hygon's processors do where vendors differ: the prefix 66 makes a near
// branch cut rip down to 16 bits, and REX.W does not widen a far pointer.
extern bool decode_as_amd;

typedef enum DecodeResult {
    DECODE_OK,
    DECODE_BAD,
    DECODE_TRUNCATED, // `max` bytes are not enough to tell
    DECODE_TOO_LONG,
} DecodeResult;

// Decodes at most `max` bytes. A client request is seen only if all its bytes are
// among them.
DecodeResult decode_insn(GuestAddr pc, const u8 *bytes, size_t max, Insn *ret_insn);

// The same, but looks among the remembered shapes first. Engine lock held. The instruction is
// valid until decode_forget().
DecodeResult decode_shared(GuestAddr pc, const u8 *bytes, size_t max, Insn *ret_insn);
// Forgets all shapes if there is little room for new ones. Engine lock held.
void decode_forget(void);

// The number of the instruction's shape, below INSN_SHAPES_MAX. Instructions with one number differ
// in displacement and constants at most. So a caller may remember what it finds out about one for
// all with this number, until decode_forgotten changes. INSN_SHAPES_MAX: the instruction has no
// number. Engine lock held.
#define INSN_SHAPES_MAX (1u << 14)
u32 insn_shape_number(const Insn *insn);
extern u32 decode_forgotten;

// True when control never reaches the instruction behind this one in line.
bool insn_ends_block(const Insn *insn);

// Asks Zydis for all operands, implicit ones included; for tools and rare lowerings.
// False for a client request, which has no operands but registers.
bool decode_operands(const Insn *insn, ZydisDecodedInstruction *ret_z,
                     ZydisDecodedOperand ret_operands[ZYDIS_MAX_OPERAND_COUNT]);

// The accesses of an instruction to memory, at most `max` of them: explicit and implicit
// operands (stack, string instructions). Returns how many.
unsigned insn_accesses(const Insn *insn, InsnAccess *ret_accesses, unsigned max);

// Returns the remembered form, or fills in and returns `room`.
const InsnForm *insn_form(const Insn *insn, InsnForm *room);

// The displacement of the instruction, and the constant that it ends with; its form must have them.
i64 insn_disp(const Insn *insn);
i64 insn_imm(const Insn *insn);

// Bit r is set when general register r is read, written or used in an address.
u32 insn_gprs_used(const Insn *insn);

#endif
