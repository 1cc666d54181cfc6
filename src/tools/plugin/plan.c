// SPDX-License-Identifier: MIT
//
// The block that a loaded tool looks at, and what it asks to be inserted there.
#include <stdio.h>
#include <string.h>

#include "tools/plugin/plugin_internal.h"

struct MuninnBlock plan;

void plan_begin(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    ASSERT(count <= INSNS_MAX);
    plan.block = block;
    plan.count = count;
    plan.insertion_count = 0;
    memset(plan.records, 0, sizeof(plan.records));
    for (u32 i = 0; i < count; i++) {
        MuninnInsn *insn = &plan.insns[i];
        insn->block = &plan;
        insn->insn = &insns[i];
        insn->index = i;
        insn->insertions = 0;
        insn->first = insn->last = NO_INSERTION;
        insn->access_count = ~0u;
    }
}

// An operand in memory that is not accessed.
static bool only_names_memory(const ToolInsn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW: return true;
    default: return false;
    }
}

static u32 access_count(MuninnInsn *insn)
{
    if (insn->access_count == ~0u)
        insn->access_count =
            only_names_memory(insn->insn)
                ? 0
                : tool_accesses(insn->insn, insn->accesses, MUNINN_ACCESSES_MAX);
    return insn->access_count;
}

const ToolAccess *plan_access(MuninnInsn *insn, size_t index)
{
    return index < access_count(insn) ? &insn->accesses[index] : NULL;
}

// ------------------------------------------------------------------- queries

MuninnAddress muninn_block_address(const MuninnBlock *block)
{
    return block->insns[0].insn->pc;
}

size_t muninn_block_count(const MuninnBlock *block)
{
    return block->count;
}

MuninnInsn *muninn_block_insn(MuninnBlock *block, size_t index)
{
    if (index >= block->count)
        plugin_refuse("muninn_block_insn: %zu of a block of %u instructions", index, block->count);
    return &block->insns[index];
}

MuninnAddress muninn_insn_address(const MuninnInsn *insn)
{
    return insn->insn->pc;
}

size_t muninn_insn_size(const MuninnInsn *insn)
{
    return insn->insn->len;
}

const uint8_t *muninn_insn_bytes(const MuninnInsn *insn)
{
    return insn->insn->bytes;
}

const char *muninn_insn_mnemonic(const MuninnInsn *insn)
{
    const char *name = ZydisMnemonicGetString(insn->insn->mnemonic);
    return insn->insn->lowering == LOWER_REQUEST ? "client request" : name ? name : "?";
}

const char *muninn_insn_text(const MuninnInsn *insn, char *text, size_t size)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisFormatter formatter;

    snprintf(text, size, "%s", muninn_insn_mnemonic(insn));
    if (size && decode_operands(insn->insn, &z, operands) &&
        ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)))
        ZydisFormatterFormatInstruction(&formatter, &z, operands, z.operand_count_visible, text,
                                        size, insn->insn->pc, NULL);
    return text;
}

const char *muninn_insn_extension(const MuninnInsn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!decode_operands(insn->insn, &z, operands))
        return "BASE";
    const char *name = ZydisISASetGetString(z.meta.isa_set);
    return name ? name : "BASE";
}

MuninnClass muninn_insn_class(const MuninnInsn *insn)
{
    switch ((Lowering)insn->insn->lowering) {
    case LOWER_JCC:
    case LOWER_LOOP: return MUNINN_CLASS_BRANCH;
    case LOWER_JMP: return MUNINN_CLASS_JUMP;
    case LOWER_JMP_INDIRECT: return MUNINN_CLASS_JUMP_INDIRECT;
    case LOWER_CALL: return MUNINN_CLASS_CALL;
    case LOWER_CALL_INDIRECT: return MUNINN_CLASS_CALL_INDIRECT;
    case LOWER_RET: return MUNINN_CLASS_RETURN;
    case LOWER_SYSCALL: return MUNINN_CLASS_SYSCALL;
    default: return MUNINN_CLASS_OTHER;
    }
}

MuninnAddress muninn_insn_target(const MuninnInsn *insn)
{
    MuninnClass class = muninn_insn_class(insn);
    bool is_direct = class == MUNINN_CLASS_BRANCH || class == MUNINN_CLASS_JUMP ||
                     class == MUNINN_CLASS_CALL;
    return is_direct ? insn->insn->target : 0;
}

#define STATUS_FLAGS                                                                               \
    (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |                   \
     ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

uint32_t muninn_insn_reads(const MuninnInsn *insn)
{
    InsnForm room;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const InsnForm *form = insn_form(insn->insn, &room);
    u32 reads = form->gprs_used & ~(u32)form->gprs_written;
    if (!decode_operands(insn->insn, &z, operands))
        return form->gprs_used;
    for (u32 i = 0; i < z.operand_count; i++) {
        const ZydisDecodedOperand *o = &operands[i];
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            ZydisRegister parts[] = {o->mem.base, o->mem.index};
            for (u32 j = 0; j < 2; j++) {
                if (ZydisRegisterGetClass(parts[j]) == ZYDIS_REGCLASS_GPR64 ||
                    ZydisRegisterGetClass(parts[j]) == ZYDIS_REGCLASS_GPR32)
                    reads |= 1u << ZydisRegisterGetId(parts[j]);
            }
        }
        bool is_read = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
        if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !is_read)
            continue;
        ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                              o->reg.value);
        if (ZydisRegisterGetClass(wide) == ZYDIS_REGCLASS_GPR64)
            reads |= 1u << ZydisRegisterGetId(wide);
    }
    return reads | (z.cpu_flags && z.cpu_flags->tested & STATUS_FLAGS ? 1u << MUNINN_FLAGS : 0);
}

uint32_t muninn_insn_writes(const MuninnInsn *insn)
{
    InsnForm room;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    u32 writes = insn_form(insn->insn, &room)->gprs_written;
    if (!decode_operands(insn->insn, &z, operands) || !z.cpu_flags)
        return writes;
    u32 flags = z.cpu_flags->modified | z.cpu_flags->set_0 | z.cpu_flags->set_1 |
                z.cpu_flags->undefined;
    return writes | (flags & STATUS_FLAGS ? 1u << MUNINN_FLAGS : 0);
}

size_t muninn_insn_accesses(const MuninnInsn *insn, MuninnAccess *accesses, size_t max)
{
    MuninnInsn *mine = (MuninnInsn *)(u64)insn;
    u32 count = access_count(mine);
    for (u32 i = 0; i < count && i < max; i++) {
        const ToolAccess *a = &mine->accesses[i];
        InsnForm room;
        accesses[i] = (MuninnAccess){
            .size = a->size_bytes,
            .reads = a->reads,
            .writes = a->writes,
            .has_address = a->address.is_one,
            .is_stack = a->address.is_hidden && a->address.base == RSP,
            .is_repeated = insn_form(insn->insn, &room)->is_repeated,
        };
    }
    return count;
}

// ---------------------------------------------------------------- insertions

static Insertion *insert(MuninnInsn *insn, InsertionKind kind)
{
    MuninnBlock *block = insn->block;
    if (block != &plan || !plan.block)
        plugin_refuse("an instruction was used after its block callback had returned");
    if (++insn->insertions > TOOL_INSERTIONS_MAX)
        plugin_refuse("more than %d insertions at one instruction", TOOL_INSERTIONS_MAX);
    u32 number = block->insertion_count++;
    if (insn->last == NO_INSERTION)
        insn->first = number;
    else
        block->insertions[insn->last].next = number;
    insn->last = number;
    block->insertions[number] =
        (Insertion){.insn = (u16)insn->index, .kind = kind, .next = NO_INSERTION};
    return &block->insertions[number];
}

bool muninn_update(MuninnInsn *insn, MuninnWord word, MuninnOperation operation,
                   MuninnSource source, int64_t value)
{
    if (word >= MUNINN_WORDS_MAX)
        plugin_refuse("muninn_update: there is no word %u", word);
    const ToolAccess *access = source == MUNINN_ADDRESS ? plan_access(insn, (size_t)value) : NULL;
    if (source == MUNINN_ADDRESS && !(access && access->address.is_one))
        return false;
    if (source == MUNINN_REGISTER && (value < 0 || value >= MUNINN_GENERAL_REGISTERS))
        plugin_refuse("muninn_update: there is no register %ld", (long)value);
    Insertion *i = insert(insn, INSERT_UPDATE);
    i->slot = SLOT_WORDS + word;
    i->update = (u8)operation;
    i->source = (u8)source;
    i->operand = value;
    i->access = source == MUNINN_ADDRESS ? (u8)value : 0;
    return true;
}

static Insertion *insert_call(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags)
{
    Insertion *i = insert(insn, INSERT_CALL);
    i->flags = (u8)flags;
    i->is_after = flags & MUNINN_CALL_AFTER;
    i->call = plugin_call(fn, data);
    return i;
}

void muninn_call(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags)
{
    insert_call(insn, fn, data, flags);
}

void muninn_call_if(MuninnInsn *insn, MuninnWord word, MuninnCondition condition, int32_t constant,
                    MuninnInsnFn *fn, void *data, unsigned flags)
{
    if (word >= MUNINN_WORDS_MAX)
        plugin_refuse("muninn_call_if: there is no word %u", word);
    Insertion *i = insert_call(insn, fn, data, flags);
    i->is_conditional = true;
    i->slot = SLOT_WORDS + word;
    i->condition = (u8)condition;
    i->constant = constant;
}

bool muninn_call_access(MuninnInsn *insn, size_t access, MuninnInsnFn *fn, void *data,
                        unsigned flags)
{
    const ToolAccess *a = plan_access(insn, access);
    if (!a || !a->address.is_one || (flags & MUNINN_CALL_AFTER && access >= ADDRESSES_MAX))
        return false;
    Insertion *i = insert_call(insn, fn, data, flags);
    i->value = VALUE_ADDRESS;
    i->access = (u8)access;
    return true;
}

bool muninn_call_branch(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags)
{
    if (insn->insn->lowering != LOWER_JCC)
        return false;
    insert_call(insn, fn, data, flags & ~(unsigned)MUNINN_CALL_AFTER)->value = VALUE_TAKEN;
    return true;
}

bool muninn_call_target(MuninnInsn *insn, MuninnInsnFn *fn, void *data, unsigned flags)
{
    MuninnClass class = muninn_insn_class(insn);
    if (class != MUNINN_CLASS_RETURN && class != MUNINN_CLASS_JUMP_INDIRECT &&
        class != MUNINN_CLASS_CALL_INDIRECT)
        return false;
    insert_call(insn, fn, data, flags & ~(unsigned)MUNINN_CALL_AFTER)->value = VALUE_TARGET;
    return true;
}

bool muninn_record(MuninnInsn *insn, size_t access, MuninnBuffer *buffer, uint32_t tag)
{
    const ToolAccess *a = plan_access(insn, access);
    if (!a || !a->address.is_one)
        return false;
    Insertion *i = insert(insn, INSERT_RECORD);
    i->slot = SLOT_BUFFERS + 2 * buffer->number;
    i->access = (u8)access;
    i->constant = (i32)tag;
    i->records = 1; // of a segment by itself, unless counters.c knows more
    counters_note_record(insn->index, buffer->number);
    plan.records[buffer->number]++;
    return true;
}
