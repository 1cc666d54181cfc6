// SPDX-License-Identifier: MIT
//
// Origins: found by where a value was, remembered where it goes.
#include "tools/memcheck/origins/origins.h"

#include "engine/cache/cache.h"
#include "engine/calltags/calltags.h"
#include "tools/memcheck/origins/notes.h"
#include "tools/memcheck/shadow/shadow.h"

enum { RED_ZONE = 128, FRAMES_NEAR = 4 };

static OriginKind kind_of(Origin origin)
{
    return (OriginKind)(origin >> ORIGIN_KIND_SHIFT);
}

// ------------------------------------------------------------------ frames

// The slot of the frame's return address; 0: no frame has it.
static GuestAddr slot_of(ToolThread *thread, GuestAddr address)
{
    GuestAddr sp = thread->gpr[RSP];
    if (address < sp - RED_ZONE || address >= memcheck_thread(thread)->stack_hi)
        return 0;
    return calltags_frame_slot(address < sp ? sp : address);
}

static Origin place_in_caller(GuestAddr callee)
{
    GuestAddr pc = calltags_caller_pc(callee);
    return pc & CONTEXT_EXACT_PC ? origin_make(ORIGIN_EXACT, pc & ~CONTEXT_EXACT_PC)
                                 : origin_make(ORIGIN_CODE, pc);
}

bool frame_by_shape(ToolThread *thread, FrameExtent *e, GuestAddr sp, GuestAddr address)
{
    u64 word, callee_word = 0;
    GuestAddr callee = 0, to = 0;
    GuestAddr slot =
        calltags_known_frame(thread->calltags.contexts, thread->gateway.call_return, sp, &word);
    if (address < sp)
        return false;
    for (u32 i = 0; slot && address >= slot + 8; i++) {
        if (i == FRAMES_NEAR)
            return false;
        callee = slot;
        callee_word = word;
        to = calltags_read(slot);
        slot = calltags_known_frame(thread->calltags.contexts, to, slot + 8, &word);
    }
    if (!slot)
        return false;
    *e = (FrameExtent){.sp = sp, .low = sp, .slot = slot, .tag = (u32)word};
    if (callee)
        frame_set_callee(e, callee, (u32)callee_word, origin_make(ORIGIN_CODE, to));
    return true;
}

// Teaches frame_by_shape() the frames from here up to the address.
static void learn_frames(ToolThread *thread, GuestAddr sp, GuestAddr address)
{
    u64 word;
    GuestAddr slot =
        calltags_next_frame(thread->calltags.contexts, thread->gateway.call_return, sp, &word);
    for (u32 i = 0; slot && address >= slot + 8 && i < FRAMES_NEAR; i++)
        slot = calltags_next_frame(thread->calltags.contexts, calltags_caller_pc(slot), slot + 8,
                                   &word);
}

// The frame that an address is in; NULL: none.
static const FrameExtent *extent_of(ToolThread *thread, GuestAddr address)
{
    GuestAddr sp = thread->gpr[RSP];
    FrameExtent *e = frame_slot(memcheck_thread(thread), sp, address);
    if (LIKELY(frame_is_same(e, sp, address)))
        return e;
    GuestAddr slot = slot_of(thread, address);
    if (!slot)
        return NULL;
    if (thread->dispatch.in_cache)
        learn_frames(thread, sp, address);
    GuestAddr callee = calltags_callee_slot(address, sp);
    *e = (FrameExtent){
        .sp = sp, .low = sp - RED_ZONE, .slot = slot, .tag = (u32)*calltags_word(slot)};
    if (callee)
        frame_set_callee(e, callee, (u32)*calltags_word(callee), place_in_caller(callee));
    return e;
}

static bool find_place(ToolThread *thread, GuestAddr address, Origin *ret_origin)
{
    const FrameExtent *e = extent_of(thread, address);
    if (!e)
        return false;
    *ret_origin = origin_of_frame(thread, e, address);
    return true;
}

bool origins_frame_place(ToolThread *thread, GuestAddr address, u32 *ret_number,
                         GuestAddr *ret_pc, bool *ret_is_return, GuestAddr *ret_cfa)
{
    enum { FRAMES_MAX = 4096 };
    Origin origin;
    CodePlace place;
    if (!find_place(thread, address, &origin))
        return false;
    GuestAddr slot = extent_of(thread, address)->slot;
    *ret_pc = origin & ORIGIN_PAYLOAD;
    if (kind_of(origin) == ORIGIN_HOST && !cache_place(*ret_pc, &place))
        return false;
    if (kind_of(origin) == ORIGIN_HOST)
        *ret_pc = place.pc;
    *ret_is_return = kind_of(origin) == ORIGIN_CODE;
    *ret_cfa = slot + 8;
    *ret_number = 0;
    for (GuestAddr at = calltags_frame_slot(thread->gpr[RSP]);
         at && at < slot && *ret_number < FRAMES_MAX; at = calltags_frame_slot(at + 8))
        ++*ret_number;
    return true;
}

// ------------------------------------------------------------------ what was stored

u16 origins_turns[ORIGINS_GRAINS];
bool origins_noted[ORIGINS_PIECES]; // somebody has asked

static u64 owner_of(ToolThread *thread, GuestAddr address)
{
    if (!is_on_stack(memcheck_thread(thread), address))
        return owner_in_heap(address);
    const FrameExtent *e = extent_of(thread, address);
    return e ? owner_in_frame(e) : 1;
}

Note notes[NOTES];

static void put_note(ToolThread *thread, GuestAddr address, Origin origin)
{
    note_put(address, origin, owner_of(thread, address));
}

static Origin find_note(ToolThread *thread, GuestAddr address)
{
    return note_of(address)->at == (address & ~7ull)
               ? note_find(address, owner_of(thread, address)) : 0;
}

// Copies and requests: the last few.
typedef struct RangeNote {
    GuestAddr start, end;
    Origin origin;
    u64 owner; // 0: whoever has it
    u64 check;
} RangeNote;

static RangeNote ranges[RANGES];
u32 range_count;
u32 range_turns[RANGE_PARTS];

static void put_range(GuestAddr start, u64 size, Origin origin, u64 owner)
{
    u32 turn = __atomic_fetch_add(&range_count, 1, __ATOMIC_RELAXED);
    RangeNote *range = &ranges[turn % RANGES];
    *(volatile u64 *)&range->check = 0;
    range->start = start;
    range->end = start + size;
    range->origin = origin;
    range->owner = owner;
    *(volatile u64 *)&range->check = start ^ (start + size) ^ origin ^ owner;
    u64 parts = min_u64(size / RANGE_PART_BYTES + 2, RANGE_PARTS);
    for (u64 i = 0; i < parts; i++)
        __atomic_store_n(range_turn(start + i * RANGE_PART_BYTES), turn + 1, __ATOMIC_RELAXED);
}

static bool still_holds(ToolThread *thread, GuestAddr start, u64 owner)
{
    return owner == 0 || owner == owner_of(thread, start);
}

// From the newest on. The answer is the same as far as none of them begins or ends.
static __attribute__((noinline)) RangeAnswer search_ranges(ToolThread *thread, GuestAddr address,
                                                           u32 next)
{
    RangeAnswer answer = {.high = ~0ull, .turn = next};
    for (u32 i = 0; i < RANGES && i < next; i++) {
        RangeNote range = ranges[(next - 1 - i) % RANGES];
        if ((range.start ^ range.end ^ range.origin ^ range.owner) != range.check)
            continue;
        if (address >= range.end) {
            answer.low = max_u64(answer.low, range.end);
        } else if (address < range.start) {
            answer.high = min_u64(answer.high, range.start);
        } else if (still_holds(thread, range.start, range.owner)) {
            answer.low = max_u64(answer.low, range.start);
            answer.high = min_u64(answer.high, range.end);
            answer.start = range.start;
            answer.owner = range.owner;
            answer.origin = range.origin;
            break;
        }
    }
    return answer;
}

static Origin find_range(ToolThread *thread, GuestAddr address)
{
    MemcheckThread *mt = memcheck_thread(thread);
    RangeAnswer *last = range_slot(mt, address);
    if (!is_near_a_range(address))
        return 0;
    const FrameExtent *e = is_on_stack(mt, address) ? extent_of(thread, address) : NULL;
    if (!range_is_same(mt, last, address, e))
        *last = search_ranges(thread, address, __atomic_load_n(&range_count, __ATOMIC_RELAXED));
    return last->origin;
}

bool origins_frame(ToolThread *thread, GuestAddr address, FrameExtent *ret_frame)
{
    const FrameExtent *e = NULL;
    if (is_on_stack(memcheck_thread(thread), address) && !(e = extent_of(thread, address)))
        return false;
    if (e)
        *ret_frame = *e;
    find_range(thread, address);
    return true;
}

void origins_made_by_client(GuestAddr start, u64 size, u32 context)
{
    put_range(start, size, origin_make(ORIGIN_CLIENT, context), 0);
}

void origins_copied(ToolThread *thread, GuestAddr to, GuestAddr from, u64 size)
{
    enum { FEW = 64 };
    GuestAddr first = shadow_first_undefined(from, size);
    if (first >= from + size)
        return;
    Origin origin = origins_of_memory(thread, first);
    if (size > FEW) {
        put_range(to, size, origin, owner_of(thread, to));
        return;
    }
    for (GuestAddr at = to + (first - from); at < to + size; at = (at | 7) + 1) {
        if (*shadow_of(at))
            put_note(thread, at, origin);
    }
}

Origin origins_of_memory(ToolThread *thread, GuestAddr address)
{
    Origin origin = find_note(thread, address);
    if (!origin)
        origin = find_range(thread, address);
    if (!origin && !find_place(thread, address, &origin))
        origin = origin_make(ORIGIN_MEMORY, address);
    return origin;
}

// ------------------------------------------------------------------ steps

static bool is_undefined(const Definedness *d, unsigned member)
{
    return member >= 16 || d->gpr[member] != 0;
}

static Origin first_of(ToolThread *thread, MemberSet set)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    for (set &= definedness_of(thread)->set; set; set &= set - 1) {
        unsigned member = (unsigned)__builtin_ctzll(set);
        if (is_undefined(definedness_of(thread), member) && mt->origins[member])
            return mt->origins[member];
    }
    return 0;
}

static u32 first_set_byte(const u8 *v, u32 size)
{
    u32 i = 0;
    while (i < size && v[i] == 0)
        i++;
    return i;
}

void origins_before(ToolThread *thread, const DefinednessStep *step, GuestAddr address,
                    const u8 *memory_v, OriginStep *ret_step)
{
    DefinednessAccess access = definedness_access(step);
    *ret_step = (OriginStep){
        .writes = definedness_writes(step),
        .value = first_of(thread, definedness_reads(step)),
        .address = first_of(thread, definedness_address(step)),
        .memory = address,
        .memory_size = access.writes ? access.size : 0,
    };
    if (!ret_step->value && access.reads && memory_v) {
        u32 i = first_set_byte(memory_v, access.size);
        if (i < access.size)
            ret_step->value = origins_of_memory(thread, address + i);
    }
    if (!ret_step->address)
        ret_step->address = ret_step->value;
}

void origins_hidden(ToolThread *thread, const HiddenAccess *hidden, unsigned count,
                    OriginStep *step)
{
    for (unsigned i = 0; i < count; i++) {
        if (!shadow_is_mapped(hidden[i].address, hidden[i].size))
            continue;
        if (hidden[i].writes) {
            step->hidden = hidden[i].address;
            step->hidden_size = hidden[i].size;
        } else if (!step->value && !shadow_has_tag(hidden[i].address, hidden[i].size)) {
            u32 at = first_set_byte(shadow_of(hidden[i].address), hidden[i].size);
            if (at < hidden[i].size)
                step->value = origins_of_memory(thread, hidden[i].address + at);
        }
    }
    if (!step->address)
        step->address = step->value;
}

void origins_after(ToolThread *thread, const OriginStep *step, const u8 *memory_v)
{
    MemcheckThread *mt = memcheck_thread(thread);
    Origin origin = step->value ? step->value : step->address;
    if (!origin)
        return;
    for (MemberSet left = step->writes & definedness_of(thread)->set; left; left &= left - 1)
        mt->origins[__builtin_ctzll(left)] = origin;
    if (step->hidden_size &&
        first_set_byte(shadow_of(step->hidden), step->hidden_size) < step->hidden_size)
        put_note(thread, step->hidden, origin);
    if (!step->memory_size || !memory_v)
        return;
    for (u32 i = 0; i < step->memory_size; i += 8) {
        u32 size = step->memory_size - i < 8 ? step->memory_size - i : 8;
        u32 first = first_set_byte(memory_v + i, size);
        if (first < size)
            put_note(thread, step->memory + i + first, origin);
    }
}

static void put_notes(ToolThread *thread, GuestAddr address, u32 size, Origin origin)
{
    const u8 *v = shadow_of(address);
    for (u32 i = 0; i < size; i += 8) {
        u32 part = size - i < 8 ? size - i : 8;
        u32 first = first_set_byte(v + i, part);
        if (first < part)
            put_note(thread, address + i + first, origin);
    }
}

void origins_stored(ToolThread *thread, GuestAddr address, u32 size, unsigned from)
{
    Origin origin = memcheck_thread(thread)->origins[from];
    if (origin)
        put_notes(thread, address, size, origin);
}

void origins_moved(ToolThread *thread, unsigned to, GuestAddr address, u32 size, unsigned from)
{
    MemcheckThread *mt = memcheck_thread(thread);
    if (address)
        address += first_set_byte(shadow_of(address), size);
    mt->origins[to] = address ? origins_of_memory(thread, address) : mt->origins[from];
}

Origin origins_of_member(ToolThread *thread, unsigned member)
{
    return memcheck_thread(thread)->origins[member];
}

// ------------------------------------------------------------------ telling

static u32 code_part(GuestAddr pc, bool is_return, Origin origin, RelayPart *ret_part)
{
    *ret_part = (RelayPart){
        .kind = PART_ORIGIN_STACK,
        .code = {
            .pc = pc,
            .is_return = is_return,
            .depth = origin >> ORIGIN_DISTANCE_SHIFT & (ORIGIN_DISTANCES - 1),
        },
    };
    return 1;
}

static u32 memory_part(GuestAddr address, RelayPart *ret_part)
{
    HeapBlock block;
    if (!heap_find(address, &block) || block.relation != HEAP_INSIDE)
        return 0;
    *ret_part = (RelayPart){.kind = PART_ORIGIN_HEAP, .context = block.alloc_context};
    return 1;
}

u32 origins_part(Origin origin, RelayPart *ret_part)
{
    u64 payload = origin & ORIGIN_PAYLOAD;
    CodePlace place;
    if (!memcheck_options->track_origins)
        return 0;
    switch (kind_of(origin)) {
    case ORIGIN_MEMORY: return memory_part(payload, ret_part);
    case ORIGIN_CODE: return code_part(payload, true, origin, ret_part);
    case ORIGIN_EXACT: return code_part(payload, false, origin, ret_part);
    case ORIGIN_HOST:
        return cache_place(payload, &place) ? code_part(place.pc, false, origin, ret_part) : 0;
    case ORIGIN_CLIENT:
        *ret_part = (RelayPart){.kind = PART_ORIGIN_CLIENT, .context = (u32)payload};
        return 1;
    default: return 0;
    }
}
