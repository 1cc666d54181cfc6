// SPDX-License-Identifier: MIT
//
// Steps of instructions that only move a value: most of what dirty blocks do is to copy
// structures with holes in them. Whatever is unusual about one goes the general way.
#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/origins/notes.h"
#include "tools/memcheck/shadow/shadow.h"

typedef enum MoveKind { MOVE_LOAD, MOVE_STORE, MOVE_COPY } MoveKind;

typedef u16 Any16 __attribute__((aligned(1), may_alias));
typedef u32 Any32 __attribute__((aligned(1), may_alias));
typedef u64 Any64 __attribute__((aligned(1), may_alias));

// Of its bytes none is one that may not be touched. At most 32; their shadow is there.
static inline bool has_no_mark(GuestAddr address, u32 size)
{
    u64 bits = *(const Any64 *)u_bits_of(address) >> (address & 7);
    return !(bits & ((1ull << size) - 1));
}

// True: all of it may be touched, and its shadow is there. At most 32 bytes.
static inline bool may_touch(ToolThread *thread, GuestAddr address, u32 size)
{
    GuestAddr last = address + size - 1;
    if (!shadow_is_open(address) || !shadow_is_open(last))
        return false;
    return has_no_mark(address, size) && !shadow_below_stack(thread, address);
}

// Returns what was moved, all of it by "or".
static inline u64 move_bytes(u8 *to, const u8 *from, u32 size)
{
    u64 v, any = 0;
    switch (size) {
    case 1: v = *to = *from; return v;
    case 2: v = *(Any16 *)to = *(const Any16 *)from; return v;
    case 4: v = *(Any32 *)to = *(const Any32 *)from; return v;
    default: break;
    }
    for (u32 i = 0; i < size; i += 8) {
        v = *(const Any64 *)(from + i);
        *(Any64 *)(to + i) = v;
        any |= v;
    }
    return any;
}

static inline u64 any_beyond(const u8 *at, u32 from, u32 to)
{
    u64 any = 0;
    for (u32 i = from; i < to; i += 8)
        any |= *(const Any64 *)(at + i);
    return any;
}

// To a register, with the zeros that follow. A general one is written as a whole: it is soon
// read so, which would wait for the store of a part.
static inline u64 move_to_member(u8 *to, const u8 *from, const DefinednessMove *m, u32 size)
{
    if (m->written == 8) {
        u64 v = size == 8   ? *(const Any64 *)from
                : size == 4 ? *(const Any32 *)from
                : size == 2 ? *(const Any16 *)from
                               : *from;
        *(Any64 *)to = v;
        return v;
    }
    u64 any = move_bytes(to, from, size);
    for (u32 i = size; i < m->written; i += 8)
        *(Any64 *)(to + i) = 0;
    return any;
}

static inline bool has_tag(GuestAddr address, u32 size)
{
    // Half a word of a tag is one too.
    u32 first = *(const u32 *)shadow_of(address & ~7ull);
    return (size > 8 || (address & 7) + size > 8 || calltag_is_likely(first)) &&
           shadow_has_tag(address, size);
}

static inline void forget(Definedness *d, const AccessMove *move)
{
    for (u32 i = 0; i < move->forgotten; i += 8)
        *(Any64 *)((u8 *)d + move->move.from + i) = 0;
    if (move->forgotten)
        d->set &= ~(1ull << move->move.from_member);
}

// All moves of one kind and size: branches on either would be mispredicted.
static inline __attribute__((always_inline)) void move(ToolThread *thread, const AccessMove *move,
                                                       GuestAddr address, MoveKind kind, u32 size)
{
    static const u8 zero[64];
    Definedness *d = definedness_of(thread);
    const DefinednessMove *m = &move->move;
    bool loads = kind == MOVE_LOAD, stores = kind == MOVE_STORE;
    if (UNLIKELY(m->address & d->set) ||
        ((loads || stores) && UNLIKELY(!may_touch(thread, address, size)))) {
        access_step(thread, (u64)move->step, address);
        if (stores)
            forget(d, move);
        return;
    }
    if (loads)
        syscalls_settle(thread);
    if (loads && UNLIKELY(relay_is_closed(thread)))
        access_give_up(address, size);
    const u8 *from = loads ? shadow_of(address) : (const u8 *)d + m->from;
    if (loads && UNLIKELY(has_tag(address, size)))
        from = zero;
    u8 *to = stores ? shadow_of(address) : (u8 *)d + m->to;
    u64 any = stores ? move_bytes(to, from, size) : move_to_member(to, from, m, size);
    if (stores) {
        if (any)
            origins_stored(thread, address, size, m->from_member);
        forget(d, move);
        return;
    }
    u64 rest = m->whole > m->written ? any_beyond(to, m->written, m->whole) : 0;
    MemberSet member = 1ull << m->to_member;
    d->set = any | rest ? d->set | member : d->set & ~member;
    if (any)
        origins_moved(thread, m->to_member, loads ? address : 0, size, m->from_member);
}

#define MOVE(name, kind, bytes)                                                              \
    static void name(ToolThread *thread, u64 arg, GuestAddr address)                         \
    {                                                                                        \
        const AccessMove *what = (const AccessMove *)arg;                                    \
        move(thread, what, address, kind, bytes);                                            \
    }
MOVE(load_1, MOVE_LOAD, 1)
MOVE(load_2, MOVE_LOAD, 2)
MOVE(load_4, MOVE_LOAD, 4)
MOVE(load_8, MOVE_LOAD, 8)
MOVE(load_16, MOVE_LOAD, 16)
MOVE(load_any, MOVE_LOAD, what->move.size)
MOVE(store_1, MOVE_STORE, 1)
MOVE(store_2, MOVE_STORE, 2)
MOVE(store_4, MOVE_STORE, 4)
MOVE(store_8, MOVE_STORE, 8)
MOVE(store_16, MOVE_STORE, 16)
MOVE(store_any, MOVE_STORE, what->move.size)
MOVE(copy_8, MOVE_COPY, 8)
MOVE(copy_any, MOVE_COPY, what->move.size)

ToolCallFn *access_move(const DefinednessMove *m)
{
    bool loads = m->from == MOVE_MEMORY;
    if (!loads && m->to != MOVE_MEMORY)
        return m->size == 8 ? copy_8 : copy_any;
    switch (m->size) {
    case 1: return loads ? load_1 : store_1;
    case 2: return loads ? load_2 : store_2;
    case 4: return loads ? load_4 : store_4;
    case 8: return loads ? load_8 : store_8;
    case 16: return loads ? load_16 : store_16;
    default: return loads ? load_any : store_any;
    }
}

// ------------------------------------------------------------------ without a call

// What load and store have in common. False: it is no case for the fast step.
static inline bool may_be_brief(ToolThread *thread, const GatewayCall *call, GuestAddr address,
                                u32 size)
{
    const AccessMove *what = (const AccessMove *)call->arg;
    thread->gateway.call_return = call->back;
    return !(what->move.address & definedness_of(thread)->set) &&
           may_touch(thread, address, size) && thread->relay.wire.ring;
}

static inline u64 v_at(const u8 *at, u32 size)
{
    switch (size) {
    case 1: return *at;
    case 2: return *(const Any16 *)at;
    case 4: return *(const Any32 *)at;
    default: return *(const Any64 *)at;
    }
}

static inline bool looks_like_tag(GuestAddr address)
{
    return calltag_is_likely(*(const u32 *)shadow_of(address & ~7ull));
}

// Any word of it may be a return address's: that takes a closer look.
static inline bool may_have_tag(GuestAddr address, u32 size)
{
    return looks_like_tag(address) || looks_like_tag(address + size - 1) ||
           (size > 8 && looks_like_tag(address + 8));
}

// Of the undefined byte at an address, in that frame if it is on the stack; 0: that takes longer.
static inline __attribute__((always_inline)) Origin
origin_in(ToolThread *thread, GuestAddr address, const FrameExtent *e)
{
    MemcheckThread *mt = memcheck_thread(thread);
    Origin origin = note_find(address, e ? owner_in_frame(e) : owner_in_heap(address));
    if (!origin && is_near_a_range(address)) {
        const RangeAnswer *last = range_slot(mt, address);
        if (!range_is_same(mt, last, address, e))
            return 0;
        origin = last->origin;
    }
    return origin ? origin
           : !e   ? origin_make(ORIGIN_MEMORY, address)
                  : origin_of_frame(thread, e, address);
}

static inline __attribute__((always_inline)) Origin
brief_origin(ToolThread *thread, GuestAddr address)
{
    const FrameExtent *e = NULL;
    if (is_on_stack(memcheck_thread(thread), address) && !(e = frame_briefly(thread, address)))
        return 0;
    return origin_in(thread, address, e);
}

// Past the error limit what is loaded becomes defined: see access_give_up().
static inline __attribute__((always_inline)) bool
give_up_briefly(Definedness *d, const DefinednessMove *m, u8 *v, u32 size)
{
    u8 *to = (u8 *)d + m->to;
    MemberSet member = 1ull << m->to_member;
    if (m->whole > m->written && any_beyond(to, m->written, m->whole))
        return false;
    for (u32 i = 0; i < m->written; i += 8)
        *(Any64 *)(to + i) = 0;
    for (u32 i = 0; i < size; i += 8) {
        switch (size) {
        case 1: *v = 0; break;
        case 2: *(Any16 *)v = 0; break;
        case 4: *(Any32 *)v = 0; break;
        default: *(Any64 *)(v + i) = 0; break;
        }
    }
    d->set &= ~member;
    return true;
}

static inline __attribute__((always_inline)) bool
brief_load(ToolThread *thread, const GatewayCall *call, GuestAddr address, u32 size)
{
    const DefinednessMove *m = &((const AccessMove *)call->arg)->move;
    Definedness *d = definedness_of(thread);
    u8 *v = shadow_of(address);
    if (!may_be_brief(thread, call, address, size) || may_have_tag(address, size) ||
        UNLIKELY(uring_is_watched))
        return false;
    if (__atomic_load_n(&thread->relay.wire.shared->header.stop_findings, __ATOMIC_RELAXED))
        return give_up_briefly(d, m, v, size);
    u64 low = v_at(v, size);
    u64 first = low ? low : size > 8 ? v_at(v + 8, 8) : 0;
    if (!first || size > 16)
        return false;
    u32 at = (u32)__builtin_ctzll(first) / 8 + (low ? 0 : 8);
    Origin origin = brief_origin(thread, address + at);
    if (!origin)
        return false;
    move_to_member((u8 *)d + m->to, v, m, size);
    d->set |= 1ull << m->to_member;
    memcheck_thread(thread)->origins[m->to_member] = origin;
    return true;
}

static inline __attribute__((always_inline)) bool
brief_store(ToolThread *thread, const GatewayCall *call, GuestAddr address, u32 size)
{
    const AccessMove *move = (const AccessMove *)call->arg;
    Definedness *d = definedness_of(thread);
    const u8 *from = (const u8 *)d + move->move.from;
    MemcheckThread *mt = memcheck_thread(thread);
    Origin origin = mt->origins[move->move.from_member];
    u64 owner;
    if (!may_be_brief(thread, call, address, size))
        return false;
    if (is_on_stack(mt, address)) {
        const FrameExtent *e = frame_briefly(thread, address);
        if (!e || address + size > e->slot)
            return false;
        owner = owner_in_frame(e);
    } else {
        owner = owner_in_heap(address);
    }
    for (u32 i = 0; i < size && origin; i += 8) {
        u64 v = v_at(from + i, size < 8 ? size : 8);
        if (v)
            note_put(address + i + (u32)__builtin_ctzll(v) / 8, origin, owner);
    }
    move_bytes(shadow_of(address), from, size);
    forget(d, move);
    return true;
}

#define BRIEF(name, way, bytes)                                                              \
    static __attribute__((no_caller_saved_registers)) bool name(                             \
        ToolThread *thread, const GatewayCall *call, GuestAddr address)                      \
    {                                                                                        \
        return way(thread, call, address, bytes);                                            \
    }
BRIEF(brief_load_1, brief_load, 1)
BRIEF(brief_load_2, brief_load, 2)
BRIEF(brief_load_4, brief_load, 4)
BRIEF(brief_load_8, brief_load, 8)
BRIEF(brief_load_16, brief_load, 16)
BRIEF(brief_store_1, brief_store, 1)
BRIEF(brief_store_2, brief_store, 2)
BRIEF(brief_store_4, brief_store, 4)
BRIEF(brief_store_8, brief_store, 8)
BRIEF(brief_store_16, brief_store, 16)

ToolBriefFn *access_brief_move(const DefinednessMove *m)
{
    bool loads = m->from == MOVE_MEMORY;
    if (!loads && m->to != MOVE_MEMORY)
        return NULL;
    switch (m->size) {
    case 1: return loads ? brief_load_1 : brief_store_1;
    case 2: return loads ? brief_load_2 : brief_store_2;
    case 4: return loads ? brief_load_4 : brief_store_4;
    case 8: return loads ? brief_load_8 : brief_store_8;
    case 16: return loads ? brief_load_16 : brief_store_16;
    default: return NULL;
    }
}

// ------------------------------------------------------------------------- copies

typedef struct Copy {
    const CopyRun *run;
    GuestAddr from, to;
    const FrameExtent *from_frame, *to_frame; // NULL: not on the stack
} Copy;

static inline Copy copy_of(const ToolThread *thread, u64 arg, GuestAddr from)
{
    const CopyRun *run = (const CopyRun *)arg;
    return (Copy){run, from, thread->gpr[run->to_base] + (u64)(i64)run->to_disp, NULL, NULL};
}

static inline bool is_in_frame(const FrameExtent *e, GuestAddr at, u32 size)
{
    return !e || (at >= e->low && at + size <= e->slot);
}

static inline u64 base_of(const ToolThread *thread, u8 base)
{
    return base == INSN_NO_REG ? 0 : thread->gpr[base];
}

// What is accessed by other registers meanwhile is at neither side.
static inline bool strangers_are_apart(const ToolThread *thread, const Copy *copy, GuestAddr from,
                                       GuestAddr to)
{
    const CopyRun *run = copy->run;
    for (u32 i = 0; i < run->stranger_count; i++) {
        const CopyStranger *s = &run->strangers[i];
        u64 base = base_of(thread, s->base);
        u64 low = base + (u64)(i64)s->low, high = base + (u64)(i64)s->high;
        if ((low < to + (u64)(run->to.high - run->to.low) && to < high) ||
            (s->is_written && low < from + (u64)(run->from.high - run->from.low) && from < high))
            return false;
    }
    return true;
}

// What is loaded meanwhile and has no guard of its own.
static inline bool others_are_defined(const ToolThread *thread, const CopyRun *run)
{
    for (u32 i = 0; i < run->asked_count; i++) {
        const CopyAsked *asked = &run->asked[i];
        GuestAddr at = base_of(thread, asked->base) + (u64)(i64)asked->low;
        u64 any = 0;
        if (!shadow_is_open(at) || !shadow_is_open(at + asked->size - 1))
            return false;
        for (u32 k = 0; k < asked->size; k += 8)
            any |= v_at(shadow_of(at + k), asked->size < 8 ? asked->size : 8);
        if (any)
            return false;
    }
    return true;
}

// Neither side has to do with the other, and both are there.
static inline bool sides_are_fit(ToolThread *thread, const Copy *copy)
{
    const CopyRun *run = copy->run;
    GuestAddr from_low = copy->from + (u64)(i64)run->from.low;
    GuestAddr from_high = copy->from + (u64)(i64)run->from.high;
    GuestAddr to_low = copy->to + (u64)(i64)run->to.low;
    GuestAddr to_high = copy->to + (u64)(i64)run->to.high;
    return (run->is_apart || from_high <= to_low || to_high <= from_low) &&
           shadow_is_open(from_low) &&
           shadow_is_open(from_high - 1) && shadow_is_open(to_low) &&
           shadow_is_open(to_high - 1) && !shadow_below_stack(thread, from_low) &&
           !shadow_below_stack(thread, to_low) &&
           strangers_are_apart(thread, copy, from_low, to_low) && others_are_defined(thread, run);
}

// Most copies have one piece, of 8 or 16 bytes: for these it is a constant. 0: as many as the run
// has, of its sizes.
typedef u32 OnePiece;

static inline CopyPiece piece_of(const Copy *copy, u32 i, OnePiece one)
{
    return one ? (CopyPiece){0, 0, (u8)one, 0} : copy->run->pieces[i];
}

// `takes_time`: origins may be searched for.
static inline __attribute__((always_inline)) bool
can_copy(ToolThread *thread, const Copy *copy, OnePiece one, bool takes_time,
         Origin origins[COPY_PIECES_MAX][4])
{
    for (u32 i = 0; i < (one ? 1 : copy->run->count); i++) {
        CopyPiece piece = piece_of(copy, i, one);
        GuestAddr from = copy->from + (u64)(i64)piece.from;
        GuestAddr to = copy->to + (u64)(i64)piece.to;
        if (!has_no_mark(from, piece.size) || !has_no_mark(to, piece.size) ||
            !is_in_frame(copy->from_frame, from, piece.size) ||
            !is_in_frame(copy->to_frame, to, piece.size))
            return false;
        for (u32 at = 0; at < piece.size; at += 8) {
            u64 v = v_at(shadow_of(from + at), piece.size < 8 ? piece.size : 8);
            if (!v)
                continue;
            u32 first = (u32)__builtin_ctzll(v) / 8;
            if (looks_like_tag(from + at) || looks_like_tag(from + at + 7))
                return false;
            Origin origin = origin_in(thread, from + at + first, copy->from_frame);
            if (!origin && takes_time)
                origin = origins_of_memory(thread, from + at + first);
            if (!origin)
                return false;
            origins[i][at / 8] = origin;
        }
    }
    return true;
}

static inline void forget_members(Definedness *d, MemberSet members)
{
    for (MemberSet left = members & d->set; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        u64 *words = member < 16 ? &d->gpr[member] : (u64 *)d->vector[member - 32];
        for (u32 i = 0; i < (member < 16 ? 1 : 8); i++)
            words[i] = 0;
    }
    d->set &= ~members;
}

// False: it has done nothing.
static inline __attribute__((always_inline)) bool
copy_pieces(ToolThread *thread, const Copy *copy, OnePiece one, bool takes_time)
{
    Origin origins[COPY_PIECES_MAX][4];
    bool gives_up =
        __atomic_load_n(&thread->relay.wire.shared->header.stop_findings, __ATOMIC_RELAXED);
    if (!sides_are_fit(thread, copy) || !can_copy(thread, copy, one, takes_time, origins))
        return false;
    for (u32 i = 0; i < (one ? 1 : copy->run->count); i++) {
        CopyPiece piece = piece_of(copy, i, one);
        u8 *from = shadow_of(copy->from + (u64)(i64)piece.from);
        GuestAddr to = copy->to + (u64)(i64)piece.to;
        for (u32 at = 0; at < piece.size; at += 8) {
            u64 v = v_at(from + at, piece.size < 8 ? piece.size : 8);
            if (v && gives_up)
                v = 0;
            if (v)
                note_put(to + at + (u32)__builtin_ctzll(v) / 8, origins[i][at / 8],
                         copy->to_frame ? owner_in_frame(copy->to_frame)
                                        : owner_in_heap(to + at));
            if (piece.size < 8)
                *(Any32 *)shadow_of(to) = (u32)v;
            else
                *(Any64 *)shadow_of(to + at) = v;
            if (gives_up && piece.size < 8)
                *(Any32 *)from = 0;
            else if (gives_up)
                *(Any64 *)(from + at) = 0;
        }
    }
    forget_members(definedness_of(thread), copy->run->members);
    return true;
}

static inline bool brief_frame(ToolThread *thread, GuestAddr address, const FrameExtent **ret)
{
    if (!is_on_stack(memcheck_thread(thread), address))
        return true;
    *ret = frame_briefly(thread, address);
    return *ret;
}

static inline __attribute__((always_inline)) bool
brief_copy(ToolThread *thread, const GatewayCall *call, GuestAddr address, OnePiece one)
{
    Copy copy = copy_of(thread, call->arg, address);
    thread->gateway.call_return = call->back;
    return thread->relay.wire.ring && !uring_is_watched &&
           brief_frame(thread, copy.from, &copy.from_frame) &&
           brief_frame(thread, copy.to, &copy.to_frame) && copy_pieces(thread, &copy, one, false);
}

#define BRIEF_COPY(name, one)                                                                \
    static __attribute__((no_caller_saved_registers)) bool name(                             \
        ToolThread *thread, const GatewayCall *call, GuestAddr address)                      \
    {                                                                                        \
        return brief_copy(thread, call, address, one);                                       \
    }
BRIEF_COPY(brief_copy_any, 0)
BRIEF_COPY(brief_copy_8, 8)
BRIEF_COPY(brief_copy_16, 16)

ToolBriefFn *access_brief_copy(const CopyRun *run)
{
    u32 size = run->count == 1 ? run->pieces[0].size : 0;
    return size == 8 ? brief_copy_8 : size == 16 ? brief_copy_16 : brief_copy_any;
}

// What is unusual about it is left to the steps of its instructions.
void access_copy(ToolThread *thread, u64 arg, GuestAddr address)
{
    Copy copy = copy_of(thread, arg, address);
    FrameExtent from, to;
    syscalls_settle(thread);
    bool knows = origins_frame(thread, copy.from, &from) && origins_frame(thread, copy.to, &to);
    MemcheckThread *mt = memcheck_thread(thread);
    copy.from_frame = is_on_stack(mt, copy.from) ? &from : NULL;
    copy.to_frame = is_on_stack(mt, copy.to) ? &to : NULL;
    if (!knows || !thread->relay.wire.ring || !copy_pieces(thread, &copy, 0, true))
        tool_fail_guard(thread);
}
