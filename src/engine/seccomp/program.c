// SPDX-License-Identifier: MIT
//
// The rules for programs are those of the kernel's bpf_check_classic() and
// seccomp_check_filter(), as its documentation and behaviour give them. Validity
// makes the interpreter safe: it tests nothing again.
#include "engine/seccomp/program.h"

#include <stddef.h>
#include <string.h>

#define SCRATCH_WORDS 16 // BPF_MEMWORDS
#define DATA_BYTES ((u32)sizeof(struct seccomp_data))

// What an instruction may be: its code, and what its operand k must be.
typedef enum OperandRule {
    RULE_UNKNOWN = 0, // not an instruction of seccomp's
    RULE_ANY,
    RULE_DATA,      // the offset of a 32-bit word of seccomp_data
    RULE_SCRATCH,   // the index of a scratch word
    RULE_DIVISOR,   // not 0
    RULE_SHIFT,     // less than 32
    RULE_JUMP,      // a distance that stays inside
    RULE_BRANCH,    // jt and jf do
} OperandRule;

static const u8 rules[256] = {
    [BPF_LD | BPF_W | BPF_ABS] = RULE_DATA,
    [BPF_LD | BPF_W | BPF_LEN] = RULE_ANY,
    [BPF_LDX | BPF_W | BPF_LEN] = RULE_ANY,
    [BPF_LD | BPF_IMM] = RULE_ANY,
    [BPF_LDX | BPF_IMM] = RULE_ANY,
    [BPF_LD | BPF_MEM] = RULE_SCRATCH,
    [BPF_LDX | BPF_MEM] = RULE_SCRATCH,
    [BPF_ST] = RULE_SCRATCH,
    [BPF_STX] = RULE_SCRATCH,
    [BPF_RET | BPF_K] = RULE_ANY,
    [BPF_RET | BPF_A] = RULE_ANY,
    [BPF_MISC | BPF_TAX] = RULE_ANY,
    [BPF_MISC | BPF_TXA] = RULE_ANY,
    [BPF_ALU | BPF_ADD | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_ADD | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_SUB | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_SUB | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_MUL | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_MUL | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_DIV | BPF_K] = RULE_DIVISOR,
    [BPF_ALU | BPF_DIV | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_AND | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_AND | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_OR | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_OR | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_XOR | BPF_K] = RULE_ANY,
    [BPF_ALU | BPF_XOR | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_LSH | BPF_K] = RULE_SHIFT,
    [BPF_ALU | BPF_LSH | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_RSH | BPF_K] = RULE_SHIFT,
    [BPF_ALU | BPF_RSH | BPF_X] = RULE_ANY,
    [BPF_ALU | BPF_NEG] = RULE_ANY,
    [BPF_JMP | BPF_JA] = RULE_JUMP,
    [BPF_JMP | BPF_JEQ | BPF_K] = RULE_BRANCH,
    [BPF_JMP | BPF_JEQ | BPF_X] = RULE_BRANCH,
    [BPF_JMP | BPF_JGE | BPF_K] = RULE_BRANCH,
    [BPF_JMP | BPF_JGE | BPF_X] = RULE_BRANCH,
    [BPF_JMP | BPF_JGT | BPF_K] = RULE_BRANCH,
    [BPF_JMP | BPF_JGT | BPF_X] = RULE_BRANCH,
    [BPF_JMP | BPF_JSET | BPF_K] = RULE_BRANCH,
    [BPF_JMP | BPF_JSET | BPF_X] = RULE_BRANCH,
};

static OperandRule rule_of(const struct sock_filter *insn)
{
    return insn->code < ARRAY_LEN(rules) ? (OperandRule)rules[insn->code] : RULE_UNKNOWN;
}

// `left` instructions follow this one.
static bool operand_is_valid(const struct sock_filter *insn, u32 left)
{
    switch (rule_of(insn)) {
    case RULE_UNKNOWN: return false;
    case RULE_ANY: return true;
    case RULE_DATA: return insn->k < DATA_BYTES && insn->k % 4 == 0;
    case RULE_SCRATCH: return insn->k < SCRATCH_WORDS;
    case RULE_DIVISOR: return insn->k != 0;
    case RULE_SHIFT: return insn->k < 32;
    case RULE_JUMP: return insn->k < left;
    case RULE_BRANCH: return insn->jt < left && insn->jf < left;
    }
    return false;
}

// Every scratch word is written before it is read, whatever way leads there.
static bool scratch_is_valid(const struct sock_filter *insns, u32 count)
{
    u16 arrives[PROGRAM_MAX]; // words written on all ways by a jump to here
    u16 written = 0;

    memset(arrives, 0xff, sizeof(arrives));
    for (u32 pc = 0; pc < count; pc++) {
        const struct sock_filter *insn = &insns[pc];
        written &= arrives[pc];
        switch (insn->code) {
        case BPF_ST:
        case BPF_STX: written |= (u16)(1u << insn->k); break;
        case BPF_LD | BPF_MEM:
        case BPF_LDX | BPF_MEM:
            if (!(written >> insn->k & 1))
                return false;
            break;
        case BPF_JMP | BPF_JA:
            arrives[pc + 1 + insn->k] &= written;
            written = 0xffff;
            break;
        default:
            if (rule_of(insn) == RULE_BRANCH) {
                arrives[pc + 1 + insn->jt] &= written;
                arrives[pc + 1 + insn->jf] &= written;
                written = 0xffff;
            }
        }
    }
    return true;
}

bool program_is_valid(const struct sock_filter *insns, u32 count)
{
    if (count == 0 || count > PROGRAM_MAX)
        return false;
    for (u32 pc = 0; pc < count; pc++)
        if (!operand_is_valid(&insns[pc], count - pc - 1))
            return false;
    u16 last = insns[count - 1].code;
    return (last == (BPF_RET | BPF_K) || last == (BPF_RET | BPF_A)) &&
           scratch_is_valid(insns, count);
}

// A shift by a register counts modulo 32, as the kernel's own code does. A division by
// zero is the caller's: it ends the program.
static u32 compute(u16 code, u32 a, u32 operand)
{
    switch (BPF_OP(code)) {
    case BPF_ADD: return a + operand;
    case BPF_SUB: return a - operand;
    case BPF_MUL: return a * operand;
    case BPF_DIV: return a / operand;
    case BPF_AND: return a & operand;
    case BPF_OR: return a | operand;
    case BPF_XOR: return a ^ operand;
    case BPF_LSH: return a << (operand & 31);
    case BPF_RSH: return a >> (operand & 31);
    default: return 0 - a; // BPF_NEG
    }
}

static u32 distance(const struct sock_filter *insn, u32 a, u32 operand)
{
    bool taken = false;

    switch (BPF_OP(insn->code)) {
    case BPF_JA: return insn->k;
    case BPF_JEQ: taken = a == operand; break;
    case BPF_JGT: taken = a > operand; break;
    case BPF_JGE: taken = a >= operand; break;
    case BPF_JSET: taken = (a & operand) != 0; break;
    }
    return taken ? insn->jt : insn->jf;
}

static u32 load(const struct sock_filter *insn, const struct seccomp_data *data,
                const u32 scratch[SCRATCH_WORDS])
{
    u32 word;

    switch (BPF_MODE(insn->code)) {
    case BPF_ABS: memcpy(&word, (const u8 *)data + insn->k, sizeof(word)); return word;
    case BPF_LEN: return DATA_BYTES;
    case BPF_MEM: return scratch[insn->k];
    default: return insn->k; // BPF_IMM
    }
}

u32 program_run(const struct sock_filter *insn, const struct seccomp_data *data)
{
    u32 scratch[SCRATCH_WORDS];
    u32 a = 0, x = 0;

    for (;; insn++) {
        u32 operand = BPF_SRC(insn->code) == BPF_X ? x : insn->k;
        switch (BPF_CLASS(insn->code)) {
        case BPF_LD: a = load(insn, data, scratch); break;
        case BPF_LDX: x = load(insn, data, scratch); break;
        case BPF_ST: scratch[insn->k] = a; break;
        case BPF_STX: scratch[insn->k] = x; break;
        case BPF_ALU:
            if (BPF_OP(insn->code) == BPF_DIV && operand == 0)
                return 0; // what the kernel's translation of it returns
            a = compute(insn->code, a, operand);
            break;
        case BPF_JMP: insn += distance(insn, a, operand); break;
        case BPF_RET: return BPF_RVAL(insn->code) == BPF_A ? a : insn->k;
        case BPF_MISC:
            if (BPF_MISCOP(insn->code) == BPF_TAX)
                x = a;
            else
                a = x;
            break;
        }
    }
}
