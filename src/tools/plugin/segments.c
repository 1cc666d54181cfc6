// SPDX-License-Identifier: MIT
//
// Divides blocks into segments, inserts what counts them, and puts right what a thread has not done
// of one that it leaves (counters.c says what for).
#include "tools/plugin/segments.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

Segment *segments;
Addition *additions;
static GuestAddr *places;
static u32 addition_count, place_count;
static u32 *first_of_block; // the first segment's word, by tool_block_number(); 0: none

// The additions of the block that is being made, in the order of instructions.
static struct {
    Addition items[INSNS_MAX * TOOL_INSERTIONS_MAX];
    u32 count;
    u32 words[INSNS_MAX + 1];  // of the segment that begins at the instruction, 0: none does
    u32 bumps[INSNS_MAX + 1];  // of the segment that is counted before the instruction, 0: none
    u32 done[INSNS_MAX + 1];   // that is counted behind it
    u64 direct;                // bit i: the additions of instruction i are made directly
} making;

bool segments_init(void)
{
    segments = counters_reserve(WORDS * sizeof(*segments));
    additions = counters_reserve(ADDITIONS_MAX * sizeof(*additions));
    places = counters_reserve(PLACES_MAX * sizeof(*places));
    first_of_block = counters_reserve(TOOL_BLOCK_NUMBERS * sizeof(*first_of_block));
    return segments && additions && places && first_of_block;
}

// --------------------------------------------------------------- translation

static void add(u32 insn, MuninnCounter counter, u32 amount)
{
    if (amount == 0)
        return;
    if (counter >= counter_count)
        plugin_refuse("muninn_count: there is no counter %u", counter);
    if (making.count == ARRAY_LEN(making.items))
        plugin_refuse("muninn_count: more than %zu additions in a block", ARRAY_LEN(making.items));
    making.items[making.count++] =
        (Addition){.insn = (u16)insn, .counter = counter, .amount = amount};
}

void muninn_count(MuninnInsn *insn, MuninnCounter counter, uint32_t amount)
{
    add(insn->index, counter, amount);
}

// That is, when what follows it in line is reached from there. INSNS_MAX is added, so that sorting
// puts it behind the branch.
enum { NOT_TAKEN = 1 << 15 };

bool muninn_count_not_taken(MuninnInsn *insn, MuninnCounter counter, uint32_t amount)
{
    if (muninn_insn_class(insn) != MUNINN_CLASS_BRANCH)
        return false;
    add(insn->index | NOT_TAKEN, counter, amount);
    return true;
}

void counters_note_record(u32 insn, u32 buffer)
{
    if (making.count == ARRAY_LEN(making.items))
        plugin_refuse("muninn_record: more than %zu additions in a block", ARRAY_LEN(making.items));
    making.items[making.count++] =
        (Addition){.insn = (u16)insn, .counter = FIRST_BUFFER + buffer, .amount = 1};
}

void counters_plan_begin(void)
{
    making.count = 0;
}

static int by_insn(const void *a, const void *b)
{
    const Addition *x = a, *y = b;
    u32 left = (x->insn & ~(u32)NOT_TAKEN) * 2 + (x->insn >> 15);
    u32 right = (y->insn & ~(u32)NOT_TAKEN) * 2 + (y->insn >> 15);
    return left < right ? -1 : left > right;
}

// What may be left elsewhere than behind it, or is done by C, ends a segment.
static bool ends_segment(const ToolInsn *insn)
{
    return insn->lowering != LOWER_COPY && insn->lowering != LOWER_JMP;
}

static u64 hash_of(const void *data, size_t size, u64 seed)
{
    const u8 *bytes = data;
    u64 hash = seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    return hash ^ hash >> 29;
}

// Blocks whose segments are known, by what they are made of.
static struct {
    struct {
        u64 hash;
        u32 word; // of the first segment
    } *slots;
    u64 capacity, used;
} known;

static u32 *find_known(u64 hash)
{
    u64 at = hash & (known.capacity - 1);
    while (known.slots[at].word && known.slots[at].hash != hash)
        at = (at + 1) & (known.capacity - 1);
    known.slots[at].hash = hash;
    return &known.slots[at].word;
}

static void make_room_for_known(void)
{
    u64 old_capacity = known.capacity;
    void *old = known.slots;
    if (known.capacity && known.used < known.capacity / 2)
        return;
    known.capacity = known.capacity ? 2 * known.capacity : 1 << 14;
    known.slots = counters_reserve(known.capacity * sizeof(*known.slots));
    if (!known.slots)
        plugin_refuse("no memory for its counters");
    for (u64 i = 0; i < old_capacity; i++) {
        const typeof(*known.slots) *slot = &((typeof(known.slots))old)[i];
        if (slot->word)
            *find_known(slot->hash) = slot->word;
    }
    if (old)
        munmap(old, old_capacity * sizeof(*known.slots));
}

// The first place at which the flags are dead: there the increment costs one instruction.
static u32 best_place(const MuninnBlock *block, u32 first, u32 end)
{
    for (u32 i = first; i < end; i++) {
        if (tool_flags_are_dead_at(block->block, block->insns[i].insn))
            return i;
    }
    return first;
}

// Makes the segment [first, end) of instructions, with the additions from *next on that are in it.
static void make_segment(const MuninnBlock *block, u32 first, u32 end, u32 *next, u32 first_place)
{
    u32 from = *next, n = addition_count;
    bool counts = false;
    for (; *next < making.count; ++*next) {
        const Addition *a = &making.items[*next];
        bool is_entry = a->insn & NOT_TAKEN;
        u32 insn = a->insn & ~(u32)NOT_TAKEN;
        // Of a branch not taken: the segment behind it.
        if ((is_entry ? insn + 1 : insn) >= end && !(first == end && insn + 1 == end))
            break;
        additions[n++] = (Addition){a->counter, a->amount, is_entry ? ON_ENTRY : a->insn, 0};
        counts |= a->counter < COUNTERS;
    }
    if (from == *next)
        return;
    u32 word = word_count;
    segments[word] = (Segment){
        .first_addition = addition_count,
        .addition_count = n - addition_count,
        .first_place = first_place,
        .first_insn = (u16)first,
        .end_insn = (u16)end,
        .bump_at = (u16)best_place(block, first, end),
        .counts = counts,
    };
    addition_count = n;
    __atomic_store_n(&word_count, word + 1, __ATOMIC_RELEASE);
}

static bool has_room(const MuninnBlock *block)
{
    return word_count + block->count + 1 <= WORDS &&
           addition_count + making.count <= ADDITIONS_MAX &&
           place_count + block->count <= PLACES_MAX;
}

// Returns the word of the first segment of the block; the last one is marked. 0: there is no more
// room.
static u32 make_segments(const MuninnBlock *block)
{
    u32 first_word = word_count, first_place = place_count, next = 0, first = 0;
    if (!has_room(block))
        return 0;
    for (u32 i = 0; i < block->count; i++) {
        places[place_count + i] = block->insns[i].insn->pc;
        if (!ends_segment(block->insns[i].insn) && i + 1 < block->count)
            continue;
        make_segment(block, first, i + 1, &next, first_place);
        first = i + 1;
    }
    make_segment(block, first, first, &next, first_place); // behind a branch at the end
    place_count += block->count;
    if (first_word == word_count)
        return 0;
    segments[word_count - 1].last_of_block = 1;
    return first_word;
}

static u32 segments_of(const MuninnBlock *block)
{
    u64 hash = hash_of(making.items, making.count * sizeof(Addition), 0xcbf29ce484222325ull);
    for (u32 i = 0; i < block->count; i++) {
        GuestAddr pc = block->insns[i].insn->pc;
        u32 lowering = block->insns[i].insn->lowering;
        hash = hash_of(&pc, sizeof(pc), hash);
        hash = hash_of(&lowering, sizeof(lowering), hash);
        // The place of the increment is a part of it.
        bool is_dead = tool_flags_are_dead_at(block->block, block->insns[i].insn);
        hash = hash_of(&is_dead, sizeof(is_dead), hash);
    }
    make_room_for_known();
    u32 *word = find_known(hash);
    if (!*word) {
        *word = make_segments(block);
        known.used += *word != 0;
    }
    return *word;
}

// Two registers that no instruction of the segment uses. False: there are none, or there is more in
// it than records of one buffer.
static bool find_free_registers(const MuninnBlock *block, const Segment *s, ToolHold *ret_hold)
{
    u32 used = 0, buffer = ~0u;
    for (u32 i = s->first_insn; i < s->end_insn; i++) {
        used |= insn_gprs_used(block->insns[i].insn);
        for (u32 n = block->insns[i].first; n != NO_INSERTION; n = block->insertions[n].next) {
            const Insertion *insertion = &block->insertions[n];
            if (insertion->kind != INSERT_RECORD || (buffer != ~0u && buffer != insertion->slot))
                return false;
            buffer = insertion->slot;
        }
    }
    u32 unused = TOOL_HOLDABLE & ~used;
    if (!(unused & (unused - 1)))
        return false;
    ret_hold->pointer = (u8)__builtin_ctz(unused);
    ret_hold->scratch = (u8)__builtin_ctz(unused & (unused - 1));
    return true;
}

// Where each record of a segment is written, from where its buffer stood when the segment began.
static void number_records(MuninnBlock *block, const Segment *s)
{
    u16 counts[BUFFERS_MAX] = {0};
    ToolHold hold;
    bool is_held = find_free_registers(block, s, &hold);
    for (u32 pass = 0; pass < 2; pass++) {
        u16 next[BUFFERS_MAX] = {0};
        for (u32 i = s->first_insn; i < s->end_insn; i++) {
            for (u32 n = block->insns[i].first; n != NO_INSERTION; n = block->insertions[n].next) {
                Insertion *insertion = &block->insertions[n];
                if (insertion->kind != INSERT_RECORD)
                    continue;
                u32 buffer = (insertion->slot - SLOT_BUFFERS) / 2;
                insertion->record = next[buffer]++;
                insertion->records = counts[buffer];
                insertion->is_held = is_held;
                insertion->hold = hold;
            }
        }
        memcpy(counts, next, sizeof(counts));
    }
}

void counters_plan_end(MuninnBlock *block)
{
    u32 number = tool_block_number(block->block);
    if (!segments)
        return;
    __atomic_store_n(&first_of_block[number], 0, __ATOMIC_RELAXED);
    memset(making.words, 0, sizeof(making.words));
    memset(making.bumps, 0, sizeof(making.bumps));
    memset(making.done, 0, sizeof(making.done));
    making.direct = 0;
    if (!making.count)
        return;
    qsort(making.items, making.count, sizeof(Addition), by_insn);
    u32 word = segments_of(block);
    if (!word) {
        making.direct = ~0ull;
        return;
    }
    __atomic_store_n(&first_of_block[number], word, __ATOMIC_RELEASE);
    for (;; word++) {
        const Segment *s = &segments[word];
        making.words[s->first_insn] = word;
        if (s->first_insn == s->end_insn)
            making.done[s->end_insn - 1] = word;
        else if (s->counts)
            making.bumps[s->bump_at] = word;
        number_records(block, s);
        if (s->last_of_block)
            break;
    }
}

static void add_directly(ToolBlock *block, u32 insn_key)
{
    for (u32 i = 0; i < making.count; i++) {
        if (making.items[i].insn == insn_key && making.items[i].counter < COUNTERS)
            tool_bump(block, making.items[i].counter, (i32)making.items[i].amount);
    }
}

void counters_emit(ToolBlock *block, u32 insn)
{
    if (making.direct)
        add_directly(block, insn);
    else if (making.bumps[insn])
        tool_bump(block, making.bumps[insn], 1);
}

void counters_emit_done(ToolBlock *block, u32 insn)
{
    if (making.direct)
        add_directly(block, insn | NOT_TAKEN);
    else if (making.done[insn])
        tool_bump(block, making.done[insn], 1);
}

// The buffer has moved on by all records of the segment at the first of them. How many of these has
// a thread not written that is before `insn`, or at it, behind what is inserted there?
static i32 records_missing(const Segment *s, u32 buffer, u32 insn, bool is_behind)
{
    i32 written = 0, missing = 0;
    for (u32 i = 0; i < s->addition_count; i++) {
        const Addition *a = &additions[s->first_addition + i];
        if (a->counter != FIRST_BUFFER + buffer)
            continue;
        bool is_written = a->insn < insn || (a->insn == insn && is_behind);
        written += is_written;
        missing += !is_written;
    }
    return written ? missing : 0;
}

// The block ends before `insn`. If that is in the middle of a segment, what the segment's number
// tells is put right.
void counters_emit_cut(ToolBlock *block, u32 insn)
{
    u32 word = 0;
    if (making.direct || !making.count || insn == 0)
        return;
    for (u32 i = 0; i <= insn && i < INSNS_MAX; i++) {
        if (making.words[i])
            word = making.words[i];
    }
    const Segment *s = &segments[word];
    if (!word || insn < s->first_insn || insn >= s->end_insn)
        return;
    bool is_counted = s->bump_at < insn;
    for (u32 i = 0; i < s->addition_count; i++) {
        const Addition *a = &additions[s->first_addition + i];
        if (a->counter >= FIRST_BUFFER)
            continue;
        bool is_due = a->insn == ON_ENTRY || a->insn < insn;
        if (is_due && !is_counted)
            tool_bump(block, a->counter, (i32)a->amount);
        else if (!is_due && is_counted)
            tool_bump(block, a->counter, -(i32)a->amount);
    }
    for (u32 buffer = 0; buffer < BUFFERS_MAX; buffer++) {
        i32 missing = records_missing(s, buffer, insn, false);
        if (missing)
            tool_slot_update(block, SLOT_BUFFERS + 2 * buffer, TOOL_ADD, TOOL_CONSTANT,
                             -missing * (i32)sizeof(MuninnRecord), NULL);
    }
}

// ------------------------------------------------------------------- leaving

// The instruction of the segment at `pc`; false: it is not in it.
static bool find_place(const Segment *s, GuestAddr pc, u32 *ret_insn)
{
    for (u32 i = s->first_insn; i < s->end_insn; i++) {
        if (places[s->first_place + i] == pc) {
            *ret_insn = i;
            return true;
        }
    }
    return false;
}

void counters_left(ToolThread *thread, const CodePlace *place)
{
    u64 *words = words_of(thread);
    u32 insn, word = segments && words
                         ? __atomic_load_n(&first_of_block[place->block], __ATOMIC_ACQUIRE)
                         : 0;
    for (; word; word = segments[word].last_of_block ? 0 : word + 1) {
        const Segment *s = &segments[word];
        if (!find_place(s, place->pc, &insn))
            continue;
        bool is_counted = s->bump_at < insn || (s->bump_at == insn && !place->boundary);
        for (u32 i = 0; i < s->addition_count; i++) {
            const Addition *a = &additions[s->first_addition + i];
            if (a->counter >= FIRST_BUFFER)
                continue;
            bool is_due = a->insn == ON_ENTRY || a->insn < insn;
            words[a->counter] += (u64)a->amount * (u64)is_due - (u64)a->amount * (u64)is_counted;
        }
        for (u32 buffer = 0; buffer < BUFFERS_MAX; buffer++)
            thread->tool.slot[SLOT_BUFFERS + 2 * buffer] -=
                (u64)records_missing(s, buffer, insn, !place->boundary) * sizeof(MuninnRecord);
        return;
    }
}
