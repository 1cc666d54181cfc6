// SPDX-License-Identifier: MIT
//
// Disassembly with the engine's names; see listing.h. Zydis writes the text, and
// the literals in it are then replaced one by one: that needs no knowledge of
// how each instruction prints its operands.
#include "engine/trace/listing.h"

#include <string.h>

#include "base/text.h"
#include "engine/decode/decode.h"
#include "engine/gateway/gateway.h"

enum { LINE_MAX = 320, CODE_TEXT_MAX = 160, NAME_MAX = 64, BYTES_COLUMN = 34, INSN_BYTES_MAX = 15 };

static const char *const gpr_name[GPR_COUNT] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                "r12", "r13", "r14", "r15"};

// ------------------------------------------------------------------- names

// The fields that emitted code addresses, by names that are short enough for a listing. Those with
// `names` are arrays of words.
static const struct CtxField {
    u32 offset, size;
    const char *name;
    const char *const *names; // of the elements; NULL: by number
} ctx_fields[] = {
#define FIELD(field, name, names)                                                                  \
    {offsetof(ThreadCtx, field), sizeof(((ThreadCtx *)0)->field), #name, names}
    FIELD(gpr, gpr, gpr_name),
    FIELD(pc, pc, NULL),
    FIELD(flags, flags, NULL),
    FIELD(client_fs, client_fs, NULL),
    FIELD(client_gs, client_gs, NULL),
    FIELD(engine_gs, engine_gs, NULL),
    FIELD(xsave, xsave, NULL),
    FIELD(translate.spill, spill, gpr_name),
    FIELD(gateway.engine_rsp, engine_rsp, NULL),
    FIELD(gateway.enter_target, enter_target, NULL),
    FIELD(gateway.exit_reason, exit_reason, NULL),
    FIELD(gateway.exit_link, exit_link, NULL),
    FIELD(gateway.pending_signal, pending_signal, NULL),
    FIELD(gateway.stop_request, stop_request, NULL),
    FIELD(gateway.self, self, NULL),
    FIELD(gateway.call_fn, call_fn, NULL),
    FIELD(gateway.call_arg, call_arg, NULL),
    FIELD(gateway.call_address, call_address, NULL),
    FIELD(gateway.call_return, call_return, NULL),
    FIELD(dispatch.stepping, stepping, NULL),
    FIELD(callstack, callstack, NULL),
    FIELD(tool.slot, tool_slot, NULL),
#undef FIELD
};

static const char *const exit_reason_name[EXIT_REASON_COUNT] = {
    [EXIT_LINK] = "EXIT_LINK",         [EXIT_INDIRECT] = "EXIT_INDIRECT",
    [EXIT_CALL] = "EXIT_CALL",         [EXIT_RETURN] = "EXIT_RETURN",
    [EXIT_SYSCALL] = "EXIT_SYSCALL",   [EXIT_RESUME] = "EXIT_RESUME",
    [EXIT_STALE] = "EXIT_STALE",       [EXIT_EMULATE] = "EXIT_EMULATE",
    [EXIT_REDIRECT] = "EXIT_REDIRECT", [EXIT_REQUEST] = "EXIT_REQUEST",
    [EXIT_VERSIONED] = "EXIT_VERSIONED", [EXIT_REMAKE] = "EXIT_REMAKE",
};

// The field at an fs:-relative displacement, or NULL.
static const struct CtxField *find_ctx_field(i64 displacement, u32 *ret_inside)
{
    i64 at = displacement - ((char *)&thread_ctx - (char *)__builtin_thread_pointer());
    for (size_t i = 0; i < ARRAY_LEN(ctx_fields); i++) {
        const struct CtxField *f = &ctx_fields[i];
        if (at >= f->offset && at < (i64)f->offset + f->size) {
            *ret_inside = (u32)at - f->offset;
            return f;
        }
    }
    return NULL;
}

static void name_ctx(i64 displacement, char name[NAME_MAX])
{
    u32 inside = 0;
    const struct CtxField *f = find_ctx_field(displacement, &inside);
    size_t n;
    if (!f) {
        text_format(name, NAME_MAX, "ctx.?");
        return;
    }
    n = text_format(name, NAME_MAX, "ctx.%s", f->name);
    if (f->size > 8 && f->names)
        n += text_format(name + n, NAME_MAX - n, "[%s]", f->names[inside / 8]);
    else if (f->size > 8)
        n += text_format(name + n, NAME_MAX - n, "[%u]", inside / 8);
    if (inside % 8)
        text_format(name + n, NAME_MAX - n, "+%u", inside % 8);
}

static bool is_inside(const Block *block, u64 host)
{
    return block && host - block->code < block->code_size;
}

// A host address that emitted code jumps to or points at; a guest address otherwise.
static void name_address(const Block *block, u64 address, char name[NAME_MAX])
{
    if (is_inside(block, address)) {
        text_format(name, NAME_MAX, "+%03lx", address - block->code);
        return;
    }
    for (unsigned reason = 0; reason < EXIT_REASON_COUNT; reason++) {
        if (address == (u64)gateway_leave(reason)) {
            text_format(name, NAME_MAX, "leave[%s]", exit_reason_name[reason]);
            return;
        }
    }
    if (address == (u64)gateway_lookup_miss())
        text_format(name, NAME_MAX, "lookup_miss");
    else if (address == (u64)gateway_tool_call())
        text_format(name, NAME_MAX, "tool_call");
    else if (address == (u64)gateway_quick_call())
        text_format(name, NAME_MAX, "quick_call");
    else if (cache_contains(address))
        text_format(name, NAME_MAX, "another block");
    else
        text_format(name, NAME_MAX, "guest 0x%lx", address);
}

// ------------------------------------------------------------- one instruction

typedef struct Decoded {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    u64 at;
    const u8 *bytes;
    const Block *block;  // NULL: guest code
    bool through_fs;     // fs:[constant], the context
    bool rip_relative;
    bool relative;       // a relative branch
    u64 address;         // of the operand or the branch's target
    const char *field;   // of the context that it stores a constant to, or NULL
} Decoded;

static bool decode(u64 at, const u8 *bytes, size_t max, const Block *block, Decoded *d)
{
    Insn insn;
    *d = (Decoded){.at = at, .bytes = bytes, .block = block};
    if (decode_insn(at, bytes, max, &insn) != DECODE_OK ||
        !decode_operands(&insn, &d->z, d->operands))
        return false;
    for (unsigned i = 0; i < d->z.operand_count_visible; i++) {
        const ZydisDecodedOperand *op = &d->operands[i];
        bool memory = op->type == ZYDIS_OPERAND_TYPE_MEMORY;
        bool constant = op->mem.base == ZYDIS_REGISTER_NONE && op->mem.index == ZYDIS_REGISTER_NONE;
        d->through_fs |= memory && op->mem.segment == ZYDIS_REGISTER_FS && constant && block;
        d->rip_relative |= memory && (op->mem.base == ZYDIS_REGISTER_RIP ||
                                      op->mem.base == ZYDIS_REGISTER_EIP);
        d->relative |= op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op->imm.is_relative;
        if (d->rip_relative || d->relative || d->through_fs)
            ZydisCalcAbsoluteAddress(&d->z, op, at, &d->address);
    }
    if (d->through_fs && d->z.raw.imm[0].size) {
        u32 inside;
        const struct CtxField *f = find_ctx_field((i64)d->z.raw.disp.value, &inside);
        d->field = f ? f->name : NULL;
    }
    return true;
}

static bool stores_to(const Decoded *d, const char *field)
{
    return d->field && strcmp(d->field, field) == 0;
}

// The exit whose link site this instruction ends in, or -1.
static int exit_of(const Decoded *d)
{
    if (!d->block || !d->relative)
        return -1;
    for (unsigned i = 0; i < d->block->exit_count; i++) {
        if (exit_site(cache_exit(d->block->first_exit + i)) == d->bytes + d->z.length - 4)
            return (int)i;
    }
    return -1;
}

static u64 parse_hex(const char *digits, const char **ret_end)
{
    u64 value = 0;
    for (;; digits++) {
        unsigned c = (u8)*digits;
        unsigned digit = c - '0' < 10 ? c - '0' : (c | 32) - 'a' < 6 ? (c | 32) - 'a' + 10 : 16;
        if (digit == 16)
            break;
        value = value << 4 | digit;
    }
    *ret_end = digits;
    return value;
}

// What a literal of the disassembly stands for; false: for itself.
static bool name_literal(const Decoded *d, const char *text, const char *literal, u64 value,
                         char name[NAME_MAX])
{
    bool after_bracket = literal > text && literal[-1] == '[';
    int exit = exit_of(d);
    if (exit >= 0) {
        const Exit *x = cache_exit(d->block->first_exit + (u32)exit);
        text_format(name, NAME_MAX, "exit %d -> guest 0x%lx%s", exit, exit_target(x),
                    x->to ? ", linked" : "");
    } else if (d->through_fs && after_bracket) {
        name_ctx(d->z.raw.disp.value, name);
    } else if ((d->rip_relative && after_bracket) || d->relative) {
        if (d->block)
            name_address(d->block, d->address, name);
        else
            text_format(name, NAME_MAX, "0x%lx", d->address);
    } else if (stores_to(d, "exit_link")) {
        text_format(name, NAME_MAX, "exit %u", (u32)value - d->block->first_exit);
    } else if (stores_to(d, "call_return")) {
        name_address(d->block, value, name);
    } else if (stores_to(d, "call_fn")) {
        text_format(name, NAME_MAX, "half of the tool's function");
    } else if (d->block && value == LOOKUP_TABLE) {
        text_format(name, NAME_MAX, "lookup_table");
    } else {
        return false;
    }
    return true;
}

static void disassemble(const Decoded *d, char *out, size_t out_size)
{
    char text[CODE_TEXT_MAX];
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    if (ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &d->z, d->operands,
                                                    d->z.operand_count_visible, text,
                                                    sizeof(text), d->at, NULL)))
        text_format(text, sizeof(text), "(no text)");
    size_t n = 0;
    for (const char *at = text; *at;) {
        char name[NAME_MAX];
        const char *end;
        bool literal = at[0] == '0' && at[1] == 'x';
        if (literal && name_literal(d, text, at, parse_hex(at + 2, &end), name)) {
            n += text_format(out + n, out_size - n, "%s", name);
            at = end;
        } else {
            n += text_format(out + n, out_size - n, "%c", *at++);
        }
    }
}

// Which bytes depend on where things happen to lie: [first, first + count).
static unsigned varying_bytes(const Decoded *d, unsigned *ret_first)
{
    if (!d->block)
        return 0;
    if (d->through_fs || d->rip_relative) {
        *ret_first = d->z.raw.disp.offset;
        bool constant_too = stores_to(d, "exit_link") || stores_to(d, "call_fn") ||
                            stores_to(d, "call_return");
        return d->z.raw.disp.size / 8u + (constant_too ? d->z.raw.imm[0].size / 8u : 0);
    }
    if (d->relative && !is_inside(d->block, d->address)) {
        *ret_first = d->z.raw.imm[0].offset;
        return d->z.raw.imm[0].size / 8u;
    }
    return 0;
}

static void bytes_text(const Decoded *d, char *out, size_t out_size)
{
    unsigned first = 0, count = varying_bytes(d, &first);
    size_t n = 0;
    for (unsigned i = 0; i < d->z.length; i++) {
        if (i - first < count)
            n += text_format(out + n, out_size - n, ".. ");
        else
            n += text_format(out + n, out_size - n, "%02x ", d->bytes[i]);
    }
    while (n < BYTES_COLUMN && n + 1 < out_size)
        n += text_format(out + n, out_size - n, " ");
}

static void put_insn(const char *label, const Decoded *d, ListingLineFn *put)
{
    char bytes[64], text[2 * CODE_TEXT_MAX], line[LINE_MAX];
    bytes_text(d, bytes, sizeof(bytes));
    disassemble(d, text, sizeof(text));
    text_format(line, sizeof(line), "  %s  %s %s", label, bytes, text);
    put(line);
}

unsigned listing_guest(GuestAddr pc, const u8 *bytes, size_t max, ListingLineFn *put)
{
    char label[24];
    Decoded d;
    text_format(label, sizeof(label), "%lx", pc);
    if (!decode(pc, bytes, min_u64(max, INSN_BYTES_MAX), NULL, &d)) {
        char line[LINE_MAX];
        text_format(line, sizeof(line), "  %s  (no instruction)", label);
        put(line);
        return 0;
    }
    put_insn(label, &d, put);
    return d.z.length;
}

// -------------------------------------------------------------------- a block

static void put_mark(const Block *block, const CodeMark *mark, ListingLineFn *put)
{
    char line[LINE_MAX];
    if (mark->spilled == MARK_NOWHERE) {
        put("  ; no guest instruction");
        return;
    }
    size_t n = text_format(line, sizeof(line), "  ; guest 0x%lx",
                           block->pc + (u64)(i64)mark->guest_delta);
    if (mark->boundary)
        n += text_format(line + n, sizeof(line) - n, ", boundary");
    if (mark->spilled)
        n += text_format(line + n, sizeof(line) - n, ", spilled");
    for (unsigned r = 0; r < GPR_COUNT; r++) {
        if (mark->spilled >> r & 1)
            n += text_format(line + n, sizeof(line) - n, " %s", gpr_name[r]);
    }
    put(line);
}

static void put_labels(const Block *block, CodePtr at, ListingLineFn *put)
{
    char line[LINE_MAX];
    if (at == code_at(block->entry))
        put("entry:");
    if (at == code_at(block->body))
        put("body:");
    for (unsigned i = 0; i < block->exit_count; i++) {
        if (code_at(cache_exit(block->first_exit + i)->stub) == at) {
            text_format(line, sizeof(line), "stub of exit %u:", i);
            put(line);
        }
    }
}

void listing_block(const Block *block, ListingLineFn *put)
{
    CodePtr code = code_at(block->code), end = code + block->code_size;
    MarkReader marks = marks_of(block);
    bool has_mark = marks_next(&marks);
    for (CodePtr at = code; at < end;) {
        char label[24];
        Decoded d;
        u32 offset = (u32)(at - code);
        put_labels(block, at, put);
        // A mark inside an instruction is a bug of the translator: it shows one line late.
        for (; has_mark && marks.mark.host_offset <= offset; has_mark = marks_next(&marks))
            put_mark(block, &marks.mark, put);
        text_format(label, sizeof(label), "+%03x", offset);
        if (!decode((u64)at, at, min_u64((u64)(end - at), INSN_BYTES_MAX), block, &d)) {
            put("  (no instruction)");
            return;
        }
        put_insn(label, &d, put);
        at += d.z.length;
    }
}
