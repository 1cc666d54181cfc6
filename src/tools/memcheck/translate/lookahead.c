// SPDX-License-Identifier: MIT
//
// Looking ahead in the client's code.
#include "tools/memcheck/translate/lookahead.h"

#include "engine/aspace/aspace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/translate/steps.h"

enum { INSNS_MAX = 96, FAR_INSNS_MAX = 512, FRAMED_INSNS_MAX = 4096, FUNCTION_BYTES_MAX = 4096,
       RED_ZONE = 128 };

// A place in the code, and the instruction there.
typedef struct Ahead {
    GuestAddr pc;
    GuestAddr start; // of the bytes that were read
    size_t size;
    Insn insn;
    u8 bytes[64];
} Ahead;

static void begin(Ahead *a, GuestAddr pc)
{
    a->pc = a->start = pc;
    a->size = 0;
}

// What follows in line is read with it, if it can be.
static bool take_any(Ahead *a)
{
    if (a->pc < a->start || a->pc - a->start + DECODE_BYTES_MAX > a->size) {
        a->start = a->pc;
        a->size = sizeof(a->bytes);
        while (a->size && !guest_read(a->pc, a->bytes, a->size))
            a->size = a->size > DECODE_BYTES_MAX ? DECODE_BYTES_MAX : a->size - 1;
    }
    size_t at = a->pc - a->start, left = a->size - at;
    return left &&
           decode_shared(a->pc, a->bytes + at, left < DECODE_BYTES_MAX ? left : DECODE_BYTES_MAX,
                         &a->insn) == DECODE_OK;
}

static bool take(Ahead *a)
{
    return take_any(a) && a->insn.lowering != LOWER_REQUEST;
}

// ------------------------------------------------------------------- the red zone

// Of a function, in bytes below the stack pointer at its entry.
typedef struct FrameShape {
    i64 depth;   // of rsp
    i64 frame;   // of rbp, if it has become the frame's
    bool framed;
    i64 deepest; // that rsp was
    i64 lowest;  // byte that is touched
    bool below;  // some byte below rsp was
} FrameShape;

static void note_operand(FrameShape *shape, unsigned base, i64 disp)
{
    i64 at;
    if (base == RSP)
        at = shape->depth - disp;
    else if (base == RBP && shape->framed)
        at = shape->frame - disp;
    else
        return;
    shape->below |= at > shape->depth;
    if (at > shape->lowest)
        shape->lowest = at;
}

static void note_operands(FrameShape *shape, const Insn *insn, const InsnForm *form)
{
    enum { ACCESSES_MAX = 4 };
    InsnAccess accesses[ACCESSES_MAX];
    unsigned count = insn_accesses(insn, accesses, ACCESSES_MAX);
    for (unsigned i = 0; i < count; i++) {
        const InsnAddress *at = &accesses[i].address;
        if (!at->is_hidden && !at->is_narrow)
            note_operand(shape, at->base, at->disp);
    }
    if (insn->mnemonic == ZYDIS_MNEMONIC_LEA)
        note_operand(shape, form->lea_base, insn_disp(insn));
}

// What the instruction does to rsp and rbp. False: that is not to be followed.
static bool follow(FrameShape *shape, const Insn *insn, const InsnForm *form)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: shape->depth += 8; return true;
    case ZYDIS_MNEMONIC_POP: shape->depth -= 8; return form->dst != RSP;
    case ZYDIS_MNEMONIC_LEA:
        if (form->dst == RSP && form->lea_base == RSP && !form->lea_indexed) {
            shape->depth -= insn_disp(insn);
            return true;
        }
        break;
    case ZYDIS_MNEMONIC_LEAVE: shape->depth = shape->frame - 8; return shape->framed;
    case ZYDIS_MNEMONIC_MOV:
        if (form->dst == RBP) {
            shape->framed = form->src == RSP;
            shape->frame = shape->depth;
        }
        break;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADD:
        if (form->dst == RSP && form->has_imm) {
            i64 constant = insn_imm(insn);
            shape->depth += insn->mnemonic == ZYDIS_MNEMONIC_SUB ? constant : -constant;
            return true;
        }
        break;
    default: break;
    }
    return form->dst != RSP || !form->writes_dst;
}

// Whether the function goes on behind this instruction, in line.
static bool goes_on(const Ahead *a, GuestAddr function)
{
    switch (a->insn.lowering) {
    case LOWER_COPY:
    case LOWER_JCC:
    case LOWER_LOOP:
    case LOWER_READ_BASE: return true;
    case LOWER_JMP: return a->insn.target - function < FUNCTION_BYTES_MAX;
    default: return false;
    }
}

static RedZone scan_function(GuestAddr function, u32 max)
{
    enum { FRAME_MAX = 1 << 20 };
    FrameShape shape = {0};
    Ahead a;
    begin(&a, function);
    for (u32 i = 0; i < max && take_any(&a); i++, a.pc += a.insn.len) {
        if (a.insn.lowering == LOWER_REQUEST)
            continue;
        bool calls = a.insn.lowering == LOWER_CALL || a.insn.lowering == LOWER_CALL_INDIRECT;
        if (calls || a.insn.lowering == LOWER_SYSCALL)
            return (RedZone){0};
        InsnForm room;
        const InsnForm *form = insn_form(&a.insn, &room);
        note_operands(&shape, &a.insn, form);
        if (!follow(&shape, &a.insn, form) || !goes_on(&a, function))
            break;
        if (shape.depth > shape.deepest)
            shape.deepest = shape.depth;
    }
    // What lies further below is no red zone's: it will be told of.
    if (!shape.below || shape.lowest > FRAME_MAX)
        return (RedZone){0};
    return (RedZone){(u32)(shape.lowest + 7) & ~7u, (u32)shape.deepest & ~7u};
}

// Call sites are many, functions few; a function that changes keeps its answer until another takes
// the place.
typedef struct KnownFunction {
    GuestAddr function;
    RedZone zone;
    bool is_noted; // its returns are
} KnownFunction;

static KnownFunction *know(GuestAddr function, bool is_framed)
{
    enum { KNOWN = 4096 };
    static KnownFunction known[KNOWN];
    KnownFunction *k = &known[(function ^ function >> 12) % KNOWN];
    if (k->function != function) {
        RedZone zone = scan_function(function, is_framed ? FRAMED_INSNS_MAX : INSNS_MAX);
        *k = (KnownFunction){.function = function, .zone = zone};
    }
    return k;
}

RedZone lookahead_red_zone(GuestAddr function, bool is_framed)
{
    return know(function, is_framed)->zone;
}

enum { RETURNS = 1 << 15, WAYS = 4 };

typedef struct Return {
    GuestAddr pc; // 0: none
    RedZone zone;
} Return;

static Return returns[RETURNS];
static u64 made[RETURNS / 64]; // a bit for each: some block has such a `ret`

static u64 return_slot(GuestAddr pc)
{
    return (pc ^ pc >> 15) % RETURNS & ~(WAYS - 1ull);
}

// That of the `ret`, or one that is free; NULL: there is none. Nothing is ever displaced, so that
// what is known only grows.
static Return *find_return(GuestAddr pc)
{
    for (u64 i = 0, slot = return_slot(pc); i < WAYS; i++) {
        if (returns[slot + i].pc == pc || !returns[slot + i].pc)
            return &returns[slot + i];
    }
    return NULL;
}

static void note_return(GuestAddr pc, RedZone zone)
{
    Return *found = find_return(pc);
    if (!found)
        return;
    zone.low = (u32)min_u64(zone.low, zone.high + RED_ZONE);
    if (found->pc) {
        zone.low = (u32)max_u64(zone.low, found->zone.low);
        zone.high = (u32)min_u64(zone.high, found->zone.high);
        bool is_known = zone.low == found->zone.low && zone.high == found->zone.high;
        if (is_known || zone.low - zone.high > RED_ZONE)
            return;
    }
    *found = (Return){pc, zone};
    u64 slot = return_slot(pc);
    if (made[slot / 64] >> slot % 64 & 1)
        tool_make_anew(pc);
}

static GuestAddr goes_forward_to(const Insn *insn)
{
    enum { FUNCTION_MAX = 1 << 16 };
    bool jumps = insn->lowering == LOWER_JCC || insn->lowering == LOWER_JMP;
    return jumps && insn->target - insn->pc < FUNCTION_MAX ? insn->target : 0;
}

// The returns of a function with a frame: those with nothing on the stack, up to the first that no
// jump leads beyond.
static void note_function(GuestAddr function, RedZone zone)
{
    FrameShape shape = {0}, whole = {0};
    GuestAddr furthest = 0;
    Ahead a;
    begin(&a, function);
    for (u32 i = 0; i < FRAMED_INSNS_MAX && take_any(&a); i++, a.pc += a.insn.len) {
        if (a.insn.lowering == LOWER_REQUEST)
            continue;
        bool returns_here = a.insn.lowering == LOWER_RET;
        bool jumps = a.insn.lowering == LOWER_JMP ||
                     (a.insn.lowering == LOWER_JMP_INDIRECT && shape.depth == 0); // or a switch
        furthest = max_u64(furthest, goes_forward_to(&a.insn));
        if (returns_here && shape.depth == 0)
            note_return(a.pc, zone);
        if ((returns_here || jumps) && furthest <= a.pc)
            return;
        InsnForm room;
        if (returns_here || jumps)
            shape = whole;
        else if (!follow(&shape, &a.insn, insn_form(&a.insn, &room)))
            return;
        if (shape.depth > whole.depth)
            whole = shape;
    }
}

void lookahead_note_frame(GuestAddr function)
{
    KnownFunction *k = know(function, true);
    if (k->zone.low && !k->is_noted)
        note_function(function, k->zone);
    k->is_noted = true;
}

// The instruction gives up a frame, all of it: `add rsp, size` and the same by lea. How it does
// that by rbp is known where it does (leave_frame() of access_hot.c).
static bool gives_up_frame(const Insn *insn, const InsnForm *form)
{
    return form->dst == RSP && insn->mnemonic != ZYDIS_MNEMONIC_POP;
}

// Each way out that follows in line: an instruction that gives up the frame, or a `ret`. What is
// popped before a `ret` lies above the zone, if it is not more than registers.
void lookahead_note_zone(GuestAddr pc, u32 bytes)
{
    enum { POPPED_MAX = 64 };
    static GuestAddr seen, seen_end; // by the last call: most functions touch their zone often
    static u32 seen_bytes;
    if (pc >= seen && pc < seen_end && bytes <= seen_bytes)
        return;
    FrameShape shape = {0};
    bool is_noted = false, is_left = false; // since the last `ret`; ever
    Ahead a;
    begin(&a, pc);
    for (u32 i = 0; i < (is_left ? INSNS_MAX : FAR_INSNS_MAX) && take_any(&a); i++) {
        InsnForm room;
        if (a.insn.lowering == LOWER_REQUEST) {
            a.pc += a.insn.len;
            continue;
        }
        const InsnForm *form = insn_form(&a.insn, &room);
        i64 before = shape.depth;
        u32 popped = before < 0 && before >= -POPPED_MAX ? (u32)-before : 0;
        bool is_return = a.insn.lowering == LOWER_RET;
        bool leaves = !is_return && (!follow(&shape, &a.insn, form) || shape.depth < before) &&
                      gives_up_frame(&a.insn, form);
        if ((is_return || leaves) && !is_noted)
            note_return(a.pc, (RedZone){bytes + popped, popped});
        is_noted = (is_noted || leaves) && !is_return;
        is_left |= is_return || leaves;
        if (is_return)
            shape = (FrameShape){0};
        a.pc += a.insn.len;
    }
    seen = pc;
    seen_end = a.pc;
    seen_bytes = bytes;
}

RedZone lookahead_left_zone(GuestAddr pc)
{
    const Return *found = find_return(pc);
    u64 slot = return_slot(pc);
    made[slot / 64] |= 1ull << slot % 64;
    return found && found->pc ? found->zone : (RedZone){0};
}

// Of the operand only the bytes are looked at, which every `pop` can afford. The base may be r12.
static bool may_be_below(const Insn *insn)
{
    enum { SIB = 4, BASE_RSP = 4, NO_DISP = 0, REGISTER = 3 };
    const u8 *modrm = insn->bytes + insn->modrm_at;
    return insn->modrm_at && (modrm[0] & 7) == SIB && (modrm[1] & 7) == BASE_RSP &&
           modrm[0] >> 6 != NO_DISP && modrm[0] >> 6 != REGISTER && insn_disp(insn) < 0;
}

// `lea rsi, [rsp - 24]`: whoever wants the address of what was left is going to read it.
static bool takes_address_below(const Insn *insn)
{
    InsnForm room;
    if (insn->mnemonic != ZYDIS_MNEMONIC_LEA)
        return false;
    const InsnForm *form = insn_form(insn, &room);
    return form->lea_base == RSP && !(form->gprs_written >> RSP & 1);
}

// `mov rsp, rbp` and `lea rsp, [rbp + end]`: rbp tells where what is left is, as rsp does.
static bool leaves_by_rbp(const Insn *insn, i64 *ret_end)
{
    InsnForm room;
    bool is_lea = insn->mnemonic == ZYDIS_MNEMONIC_LEA;
    if (!is_lea && insn->mnemonic != ZYDIS_MNEMONIC_MOV)
        return false;
    const InsnForm *form = insn_form(insn, &room);
    if (is_lea ? form->lea_base != RBP || form->lea_indexed : form->src != RBP)
        return false;
    *ret_end = is_lea ? insn_disp(insn) : 0;
    return true;
}

bool lookahead_is_left_read(const Insn *insn, const Insn *end)
{
    enum { ACCESSES_MAX = 4 };
    InsnAccess accesses[ACCESSES_MAX];
    i64 left_end = 0;
    bool by_rbp = leaves_by_rbp(insn, &left_end);
    for (insn++; insn < end; insn++) {
        bool below = may_be_below(insn);
        if (below && takes_address_below(insn))
            return true;
        unsigned count = below || by_rbp ? insn_accesses(insn, accesses, ACCESSES_MAX) : 0;
        for (unsigned i = 0; i < count; i++) {
            const InsnAddress *at = &accesses[i].address;
            if (accesses[i].reads && ((below && at->base == RSP) ||
                                      (by_rbp && at->base == RBP && at->disp < left_end)))
                return true;
        }
        if (by_rbp && step_gist(insn).writes & MEMBER_GPR(RBP))
            by_rbp = false;
        if (insn->lowering != LOWER_COPY && insn->lowering != LOWER_JCC)
            return false;
    }
    return false;
}

// ------------------------------------------------------------------ compared vectors

typedef enum VectorUse {
    USE_UNKNOWN,  // stores it, or does what a search has no need of
    USE_COMBINES, // goes on in another vector
    USE_DECIDES,  // becomes a mask or flags
} VectorUse;

static VectorUse use_of(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
#define BOTH(name) case ZYDIS_MNEMONIC_##name: case ZYDIS_MNEMONIC_V##name:
    BOTH(PCMPEQB) BOTH(PCMPEQW) BOTH(PCMPEQD) BOTH(PCMPEQQ) BOTH(PCMPGTB) BOTH(PCMPGTW)
    BOTH(PCMPGTD) BOTH(PMINUB) BOTH(PMINUW) BOTH(PMINUD) BOTH(PMAXUB) BOTH(PMAXUW) BOTH(PMAXUD)
    BOTH(PSUBB) BOTH(PSUBW) BOTH(PSUBD) BOTH(PADDB) BOTH(PXOR) BOTH(PAND) BOTH(POR) BOTH(PANDN)
    BOTH(PSLLDQ) BOTH(PSRLDQ) BOTH(PALIGNR) BOTH(MOVDQA) BOTH(MOVDQU) BOTH(MOVAPS) BOTH(MOVUPS)
    BOTH(MOVHPD) BOTH(MOVLPD) BOTH(MOVHPS) BOTH(MOVLPS) BOTH(MOVQ)
    case ZYDIS_MNEMONIC_VPXORD: case ZYDIS_MNEMONIC_VPXORQ: case ZYDIS_MNEMONIC_VPANDD:
    case ZYDIS_MNEMONIC_VPANDQ: case ZYDIS_MNEMONIC_VPORD: case ZYDIS_MNEMONIC_VPORQ:
    case ZYDIS_MNEMONIC_VPANDNQ: case ZYDIS_MNEMONIC_VPTERNLOGD: case ZYDIS_MNEMONIC_VPTERNLOGQ:
    case ZYDIS_MNEMONIC_VMOVDQA64: case ZYDIS_MNEMONIC_VMOVDQU64: case ZYDIS_MNEMONIC_VMOVDQU8:
    case ZYDIS_MNEMONIC_VMOVDQU32: case ZYDIS_MNEMONIC_VMOVDQA32: return USE_COMBINES;
    BOTH(PMOVMSKB) BOTH(PTEST) BOTH(PCMPISTRI) BOTH(PCMPISTRM)
    case ZYDIS_MNEMONIC_VPCMPB: case ZYDIS_MNEMONIC_VPCMPUB: case ZYDIS_MNEMONIC_VPCMPD:
    case ZYDIS_MNEMONIC_VPCMPUD: case ZYDIS_MNEMONIC_VPTESTMB: case ZYDIS_MNEMONIC_VPTESTNMB:
    case ZYDIS_MNEMONIC_VPTESTMD: case ZYDIS_MNEMONIC_VPTESTNMD: return USE_DECIDES;
#undef BOTH
    default: return USE_UNKNOWN;
    }
}

static i32 vector_of(const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return -1;
    switch (ZydisRegisterGetClass(op->reg.value)) {
    case ZYDIS_REGCLASS_XMM: return op->reg.value - ZYDIS_REGISTER_XMM0;
    case ZYDIS_REGCLASS_YMM: return op->reg.value - ZYDIS_REGISTER_YMM0;
    case ZYDIS_REGCLASS_ZMM: return op->reg.value - ZYDIS_REGISTER_ZMM0;
    default: return -1;
    }
}

// The vectors that an instruction reads and writes, as bits.
typedef struct VectorOperands {
    u32 read, written;
    bool to_mask;
} VectorOperands;

// What these load is half of a vector, which keeps the other half.
static bool loads_half(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVHPD:
    case ZYDIS_MNEMONIC_MOVLPD:
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVLPS: return true;
    default: return false;
    }
}

static bool find_vectors(const Insn *insn, VectorOperands *ret)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *ret = (VectorOperands){0};
    StepGist gist = step_gist(insn);
    if (!((gist.reads | gist.writes) & MEMBERS_VECTOR))
        return true;
    if (!decode_operands(insn, &z, operands))
        return false;
    for (unsigned i = 0; i < z.operand_count; i++) {
        i32 n = vector_of(&operands[i]);
        if (n < 0)
            continue;
        if (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ)
            ret->read |= 1u << n;
        if (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            ret->written |= 1u << n;
    }
    if (loads_half(insn->mnemonic))
        ret->read |= ret->written;
    ret->to_mask = operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                   ZydisRegisterGetClass(operands[0].reg.value) == ZYDIS_REGCLASS_MASK;
    return true;
}

bool lookahead_is_compared(const Insn *insn)
{
    if (use_of(insn->mnemonic) == USE_UNKNOWN)
        return false; // most loads
    Ahead a;
    begin(&a, insn->pc);
    u32 loaded = 0;
    VectorOperands vectors;
    bool decided = false;
    for (u32 i = 0; i < INSNS_MAX && take(&a) && find_vectors(&a.insn, &vectors);
         i++, a.pc += a.insn.len) {
        VectorUse use = use_of(a.insn.mnemonic);
        bool uses = i == 0 || vectors.read & loaded;
        if (uses && use == USE_COMBINES && vectors.to_mask)
            use = USE_DECIDES;
        if (uses && (use == USE_UNKNOWN || !(vectors.read | vectors.written)))
            return false;
        if (uses && use == USE_COMBINES && !vectors.written)
            return false; // a store
        decided |= uses && use == USE_DECIDES;
        loaded = uses && use == USE_COMBINES ? loaded | vectors.written
                                             : loaded & ~vectors.written;
        if (decided || !goes_on(&a, insn->pc))
            break;
    }
    return decided;
}

// ------------------------------------------------------------------ registers

// What an instruction makes of what is in a register.
typedef enum Fate { FATE_OPEN, FATE_READ, FATE_MAY_BE_READ, FATE_NOT_READ } Fate;

static Fate fate_at(const Insn *insn, MemberSet member)
{
    const MemberSet arguments = MEMBER_GPR(RDI) | MEMBER_GPR(RSI) | MEMBER_GPR(RDX) |
                                MEMBER_GPR(RCX) | MEMBER_GPR(R8) | MEMBER_GPR(R9);
    StepGist gist = step_gist(insn);
    if (gist.reads & member)
        return FATE_READ;
    switch (insn->lowering) {
    case LOWER_CALL:
    case LOWER_CALL_INDIRECT: return arguments & member ? FATE_MAY_BE_READ : FATE_NOT_READ;
    case LOWER_RET: return ACCESS_DEAD_GPRS_AT_RETURN & member ? FATE_NOT_READ : FATE_MAY_BE_READ;
    case LOWER_COPY: return gist.overwrites & member ? FATE_NOT_READ : FATE_OPEN;
    case LOWER_JCC:
    case LOWER_JMP: return FATE_OPEN;
    default: return FATE_MAY_BE_READ;
    }
}

bool lookahead_is_read(GuestAddr pc, unsigned gpr)
{
    enum { WAYS_MAX = 8 }; // of branches, that are still to be followed
    GuestAddr ways[WAYS_MAX];
    unsigned way_count = 0, branches = 0;
    Ahead a;
    begin(&a, pc);
    for (u32 i = 0; i < INSNS_MAX; i++) {
        if (!take(&a))
            return branches == 0;
        Fate fate = fate_at(&a.insn, MEMBER_GPR(gpr));
        if (fate == FATE_READ || (fate == FATE_MAY_BE_READ && branches == 0))
            return true;
        if (fate != FATE_OPEN && way_count == 0)
            return false;
        bool is_branch = a.insn.lowering == LOWER_JCC;
        branches += is_branch;
        if (is_branch && way_count < WAYS_MAX)
            ways[way_count++] = a.insn.target;
        if (fate != FATE_OPEN)
            a.pc = ways[--way_count];
        else
            a.pc = a.insn.lowering == LOWER_JMP ? a.insn.target : a.pc + a.insn.len;
    }
    return branches == 0; // too far to tell: where there is no choice, it will be read
}

// ------------------------------------------------------------------- what is dead

// Instructions in line, up to a branch. Of what is open at its end it depends on where it goes on.
typedef struct Stretch {
    GuestAddr pc;
    MemberSet open;
    MemberSet live, passed; // at its beginning: may be read; see lookahead_dead()
    u8 next[2];             // NOWHERE, or which
} Stretch;

enum { STRETCHES_MAX = 48, NOWHERE = STRETCHES_MAX };

typedef struct Region {
    MemberSet members, low;
    i32 budget; // instructions that may still be looked at
    unsigned count;
    Stretch stretches[STRETCHES_MAX];
} Region;

// Where a stretch goes on with `open`. If there is no room, it may all be read there.
static u8 next_stretch(Region *region, Stretch *from, GuestAddr pc)
{
    unsigned i = 0;
    while (i < region->count && region->stretches[i].pc != pc)
        i++;
    if (i == STRETCHES_MAX) {
        from->live |= from->open;
        return NOWHERE;
    }
    if (i == region->count)
        region->stretches[region->count++] = (Stretch){.pc = pc, .next = {NOWHERE, NOWHERE}};
    return (u8)i;
}

static void end_stretch(Region *region, Stretch *at, const Insn *last)
{
    const MemberSet arguments = 0xffull << 32, results = MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    bool is_return = last->lowering == LOWER_RET;
    switch (last->lowering) {
    case LOWER_JCC:
        at->next[1] = next_stretch(region, at, last->pc + last->len);
        // fallthrough
    case LOWER_JMP: at->next[0] = next_stretch(region, at, last->target); return;
    case LOWER_CALL:
    case LOWER_CALL_INDIRECT:
    case LOWER_RET:
        at->passed = at->open & (is_return ? results : arguments);
        at->live |= at->open & ~at->passed &
                    ~(is_return ? ACCESS_DEAD_AT_RETURN : ACCESS_DEAD_AT_CALL);
        break;
    default: at->live |= at->open; break;
    }
    at->open = 0;
}

static void walk_stretch(Region *region, Stretch *at)
{
    Ahead a;
    at->open = region->members;
    begin(&a, at->pc);
    while (at->open) {
        if (--region->budget < 0 || !take(&a)) {
            at->live |= at->open;
            at->open = 0;
            return;
        }
        StepGist gist = step_gist(&a.insn);
        at->live |= at->open & gist.reads;
        at->open &= ~(gist.reads | gist.overwrites | (gist.overwrites_low & region->low));
        if (a.insn.lowering != LOWER_COPY) {
            end_stretch(region, at, &a.insn);
            return;
        }
        a.pc += a.insn.len;
    }
}

// Until nothing changes: what is read nowhere in a loop, or behind it, is dead in it.
static void settle(Region *region)
{
    for (bool changes = true; changes;) {
        changes = false;
        for (unsigned i = region->count; i-- > 0;) {
            Stretch *at = &region->stretches[i];
            for (unsigned k = 0; k < 2; k++) {
                if (at->next[k] == NOWHERE)
                    continue;
                const Stretch *next = &region->stretches[at->next[k]];
                MemberSet live = at->live | (at->open & next->live);
                MemberSet passed = at->passed | (at->open & next->passed);
                changes |= live != at->live || passed != at->passed;
                at->live = live;
                at->passed = passed;
            }
        }
    }
}

MemberSet lookahead_dead(GuestAddr pc, MemberSet members, MemberSet low, MemberSet *ret_passed)
{
    enum { INSNS = 300 };
    Region region; // its stretches are as good as they are
    region.members = members;
    region.low = low;
    region.budget = INSNS;
    region.count = 1;
    region.stretches[0] = (Stretch){.pc = pc, .next = {NOWHERE, NOWHERE}};
    for (unsigned i = 0; i < region.count; i++)
        walk_stretch(&region, &region.stretches[i]);
    settle(&region);
    const Stretch *first = &region.stretches[0];
    *ret_passed = first->passed & ~first->live;
    return members & ~(first->live | first->passed);
}
