// SPDX-License-Identifier: MIT
//
// Findings: told apart, counted, and told to the monitor once each.
//
// Two findings are one if their kind, their key and their innermost frames agree:
// four frames, and two once a hundred have been shown, as users of such tools know it. So
// each is kept under two hashes, lest one that was found by four frames is new by two.
// General registers only: a tool's slow path calls this from the cache.
#include "base/assert.h"
#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/callstack/callstack.h"
#include "engine/gateway/gateway.h"
#include "engine/relay/relay_internal.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"

enum {
    SLOTS_AT_START = 1024, // a power of two; every finding has up to two
    FRAMES_COMPARED = 4,
    FRAMES_COMPARED_LATER = 2,
    LATER = 100, // findings shown
};

typedef struct Slot {
    u64 hash; // 0: free
    u32 id;
} Slot;

static Lock lock;      // of the slots
static Slot *slots;    // slot_count of them, or NULL before the first finding
static u64 slot_count; // most programs have few findings, and few pages of this
static u64 slots_used;

void relay_findings_reset(void)
{
    lock_reset_after_fork(&lock);
    if (slots)
        pages_unmap(slots, slot_count * sizeof(Slot));
    slots = NULL;
    slot_count = slots_used = 0;
}

static u64 mix(u64 hash, u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

const FieldShape *relay_kind_shape(u32 kind)
{
    u32 own = kind - KIND_COUNT;
    if (kind < KIND_COUNT)
        return kind_in_table(kind)->shape;
    if (own >= tool->kind_count)
        return NULL;
    return tool->kinds[own].shape ? tool->kinds[own].shape : shape_in_table(SHAPE_NOTHING);
}

const FieldShape *relay_part_shape(u32 kind)
{
    u32 own = kind - PART_COUNT;
    if (kind < PART_COUNT)
        return part_in_table(kind)->shape;
    if (own >= tool->part_count)
        return NULL;
    return tool->parts[own].shape ? tool->parts[own].shape : shape_in_table(SHAPE_NOTHING);
}

// Texts belong to what a finding is; numbers do only as far as they are in its key.
static u64 mix_texts(u64 hash, const RelayFinding *finding)
{
    const FieldShape *shape = relay_kind_shape(finding->kind);
    for (u32 i = 0; i < shape->count; i++) {
        const char *text = (const char *)finding->fields.words[i];
        if (shape->fields[i].type != FIELD_TEXT)
            continue;
        for (; text && *text; text++)
            hash = mix(hash, (u8)*text);
    }
    return hash;
}

// What a finding is known by: its first four frames, its first two.
typedef struct Names {
    u64 near, far;
} Names;

static Names names_of(const RelayFinding *finding, const GuestAddr *frames, size_t count)
{
    Names names;
    u64 hash = mix_texts(mix(mix(0, finding->kind + 1), finding->key), finding);
    names.near = hash;
    for (size_t i = 0; i < min_u64(count, FRAMES_COMPARED); i++) {
        hash = mix(hash, frames[i]);
        if (i < FRAMES_COMPARED_LATER)
            names.near = hash;
    }
    // Never 0, and never each other's.
    names.near |= 1;
    names.far = hash << 1 | 2;
    return names;
}

static Slot *slot_of(u64 hash)
{
    u64 at = hash % slot_count;
    while (slots[at].hash && slots[at].hash != hash)
        at = (at + 1) % slot_count;
    return &slots[at];
}

// Room for two more, at most half full. False: no memory.
static bool make_room(void)
{
    Slot *old = slots;
    u64 old_count = slot_count, new_count = old ? 2 * old_count : SLOTS_AT_START;
    if (old && 2 * (slots_used + 2) <= old_count)
        return true;
    Slot *bigger = pages_map(new_count * sizeof(Slot));
    if (!bigger)
        return false;
    slots = bigger;
    slot_count = new_count;
    for (u64 i = 0; i < old_count; i++) {
        if (old[i].hash)
            *slot_of(old[i].hash) = old[i];
    }
    if (old)
        pages_unmap(old, old_count * sizeof(Slot));
    return true;
}

static void name(u64 hash, u32 id)
{
    Slot *slot = slot_of(hash);
    if (slot->hash)
        return; // the first that has a name keeps it
    *slot = (Slot){hash, id};
    slots_used++;
}

// A new finding's number, under both its names.
static u32 add(Names names)
{
    u32 id = relay.shared->header.finding_high;
    if (id >= WIRE_FINDINGS || !make_room())
        return WIRE_FINDINGS;
    name(names.near, id);
    name(names.far, id);
    __atomic_store_n(&relay.shared->header.finding_high, id + 1, __ATOMIC_RELEASE);
    return id;
}

// The id of the finding; *ret_new when it is the first of its kind. WIRE_FINDINGS when
// there are too many, or when it would be a new one and `closed`.
static u32 find_or_add(Names names, bool closed, bool *ret_new)
{
    bool later = __atomic_load_n(&relay.shared->header.shown_count, __ATOMIC_RELAXED) >= LATER;
    u32 id = WIRE_FINDINGS;
    *ret_new = false;
    lock_acquire(&lock);
    const Slot *slot = slots ? slot_of(later ? names.near : names.far) : NULL;
    if (slot && slot->hash) {
        id = slot->id;
    } else if (!closed) {
        id = add(names);
        *ret_new = id != WIRE_FINDINGS;
    }
    lock_release(&lock);
    return id;
}

// The finding waits for each of its parts, whatever they are.
static const FieldShape *shape_of_part(u32 kind)
{
    const FieldShape *shape = relay_part_shape(kind);
    return shape ? shape : shape_in_table(SHAPE_NOTHING);
}

static void put_part(WireProducer *producer, u32 id, const RelayPart *part)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    u64 words[FIELDS_MAX];
    char texts[FIELD_TEXTS_BYTES];
    const FieldShape *shape = shape_of_part(part->kind);
    size_t count = part->context ? context_frames(part->context, frames, WIRE_FRAMES_MAX) : 0;
    size_t size = fields_encode(shape, &part->fields, words, texts);
    wire_put_part(producer, &(Wire_part){
        .id = id,
        .kind = part->kind,
        .values = {words, shape->count},
        .texts = {texts, size},
        .pcs = {frames, min_u64(count, WIRE_FRAMES_MAX)},
    });
}

static void put_finding(ThreadCtx *ctx, u32 id, const RelayFinding *finding,
                        const GuestAddr *frames, size_t count)
{
    u64 words[FIELDS_MAX];
    char texts[FIELD_TEXTS_BYTES];
    const FieldShape *shape = relay_kind_shape(finding->kind);
    size_t size = fields_encode(shape, &finding->fields, words, texts);
    wire_put_finding(&ctx->relay.wire, &(Wire_finding){
        .id = id,
        .kind = finding->kind,
        .thread = ctx->relay.number,
        .parts = finding->part_count,
        .flags = finding->flags,
        .values = {words, shape->count},
        .texts = {texts, size},
        .pcs = {frames, count},
    });
    for (u32 i = 0; i < finding->part_count; i++)
        put_part(&ctx->relay.wire, id, &finding->parts[i]);
}

// In the cache the vector registers are the client's, and the place that they have
// outside of it is free.
void relay_outside(ThreadCtx *ctx, void (*fn)(ThreadCtx *ctx, void *data), void *data)
{
    if (!ctx->dispatch.in_cache) {
        fn(ctx, data);
        return;
    }
    u64 mask = gateway_xsave_mask();
    u32 low = (u32)mask, high = (u32)(mask >> 32);
    __asm__ volatile("xsave64 %0" : "+m"(*ctx->xsave) : "a"(low), "d"(high) : "memory");
    fn(ctx, data);
    __asm__ volatile("xrstor64 %0" : : "m"(*ctx->xsave), "a"(low), "d"(high) : "memory");
}

static void open_producer(ThreadCtx *ctx, void *data)
{
    (void)data;
    relay_producer(ctx);
}

// --exit-on-first-error. Other threads may hold any lock, and this one as well, so nothing but the
// monitor is asked: no function of the client's runs, no leaks are searched.
static void end_run(ThreadCtx *ctx, void *data)
{
    enum { EXIT_FIRST_ERROR = 1 }; // if the monitor, which knows the user's wish, has gone
    int status = EXIT_FIRST_ERROR;
    (void)data;
    signal_block_host();
    if (ctx->thread.vfork_depth == 0)
        status = relay_end(ctx, status, 0);
    process_exit_at_once(ctx, status);
}

static bool run_is_over(void)
{
    return __atomic_load_n(&relay.shared->header.exit_now, __ATOMIC_ACQUIRE);
}

void relay_vfork_parent(ThreadCtx *ctx)
{
    if (relay.shared && run_is_over())
        end_run(ctx, NULL);
}

static void say_lost(ThreadCtx *ctx, void *data)
{
    (void)ctx;
    (void)data;
    relay_lost();
}

static void say_alarms(ThreadCtx *ctx, void *data)
{
    (void)ctx;
    (void)data;
    relay_say_alarms();
}

WireProducer *relay_wire(ThreadCtx *ctx)
{
    if (UNLIKELY(ctx->relay.wire.ring == NULL))
        relay_outside(ctx, open_producer, NULL);
    return ctx->relay.wire.ring && relay.life >= 0 ? &ctx->relay.wire : NULL;
}

// The finding's id, and its record on the wire if it is a new one.
static u32 tell(ThreadCtx *ctx, const RelayFinding *finding, bool *ret_new)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    WireProducer *producer = ctx->relay.errors_disabled ? NULL : relay_wire(ctx);

    *ret_new = false;
    if (!producer || !relay_kind_shape(finding->kind))
        return WIRE_FINDINGS;
    size_t count = context_frames(finding->context, frames, WIRE_FRAMES_MAX);
    count = min_u64(count, WIRE_FRAMES_MAX);
    bool closed = __atomic_load_n(&producer->shared->header.stop_findings, __ATOMIC_RELAXED) &&
                  !(finding->flags & FINDING_ASKED_FOR);
    u32 id = find_or_add(names_of(finding, frames, count), closed, ret_new);
    if (id == WIRE_FINDINGS)
        return WIRE_FINDINGS;
    __atomic_add_fetch(&producer->shared->findings[id].count, 1, __ATOMIC_RELAXED);
    if (*ret_new)
        put_finding(ctx, id, finding, frames, count);
    return id;
}

static WireVerdict verdict_of(u32 id)
{
    return __atomic_load_n(&relay.shared->findings[id].verdict, __ATOMIC_ACQUIRE);
}

u32 relay_finding_tell(ThreadCtx *ctx, const RelayFinding *finding)
{
    bool is_new;
    return tell(ctx, finding, &is_new);
}

WireVerdict relay_finding_verdict(ThreadCtx *ctx, u32 id)
{
    if (id == WIRE_FINDINGS)
        return VERDICT_IGNORED;
    WireVerdict verdict = verdict_of(id);
    bool waits = verdict == VERDICT_NONE;
    if (waits) {
        wire_ring_bell(&ctx->relay.wire);
        verdict = wire_finding_wait(relay.shared, id, &relay.life);
    }
    if (run_is_over())
        relay_outside(ctx, end_run, NULL);
    if (waits && relay.life >= 0 && wire_hung_up(relay.life))
        relay_outside(ctx, say_lost, NULL);
    if (UNLIKELY(relay.alarm_seen != relay.shared->header.alarm_sequence))
        relay_outside(ctx, say_alarms, NULL);
    return verdict;
}

WireVerdict relay_finding(ThreadCtx *ctx, const RelayFinding *finding)
{
    bool is_new;
    u32 id = tell(ctx, finding, &is_new);
    return is_new || id == WIRE_FINDINGS ? relay_finding_verdict(ctx, id) : verdict_of(id);
}

bool relay_is_closed(ThreadCtx *ctx)
{
    const WireProducer *producer = relay_wire(ctx);
    return producer && __atomic_load_n(&producer->shared->header.stop_findings, __ATOMIC_RELAXED);
}

u64 relay_error_count(void)
{
    u64 sum = 0;
    if (!relay.shared)
        return 0;
    for (u32 i = 0; i < relay.shared->header.finding_high; i++) {
        if (relay.shared->findings[i].verdict == VERDICT_SHOWN)
            sum += relay.shared->findings[i].count;
    }
    return sum;
}
