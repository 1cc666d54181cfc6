// SPDX-License-Identifier: MIT
//
// Client-like memory for tests of Memcheck's string functions: an arena with its shadow and U
// map, nothing around it, and a model of the three that plain loops run on.
#ifndef MUNINN_TESTS_MEMCHECK_STRINGS_WORLD_H
#define MUNINN_TESTS_MEMCHECK_STRINGS_WORLD_H

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/types.h"
#include "engine/aspace/aspace.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/strings/call.h"
#include "unit.h"

// Not every test uses all of it.
#define WORLD_FUNCTION __attribute__((unused)) static

#define ARENA_START 0x20000000ull // where the sanitizers have nothing
enum { ARENA_BYTES = 3 * 4096 };

// What was told of, first of each kind. Address 0: not told.
typedef struct Told {
    GuestAddr read, write;
    bool condition, value, overlap;
} Told;
static Told told;

// These stand in for strings/report_hot.c.
void string_report_access(StringCall *s, GuestAddr address, bool is_write)
{
    (void)s;
    *(is_write ? &told.write : &told.read) = address;
}
void string_report_condition(StringCall *s, unsigned argument)
{
    (void)s, (void)argument;
    told.condition = true;
}
void string_report_value(StringCall *s, unsigned argument)
{
    (void)s, (void)argument;
    told.value = true;
}
void string_report_overlap(StringCall *s, GuestAddr to, GuestAddr from, u64 count,
                           const char *name)
{
    (void)s, (void)to, (void)from, (void)count, (void)name;
    told.overlap = true;
}
void string_note_origins(StringCall *s, GuestAddr to, GuestAddr from, u64 size)
{
    (void)s, (void)to, (void)from, (void)size;
}

static ThreadCtx world_thread;
static MemcheckThread world_memcheck;
static Definedness *const world_definedness __attribute__((unused)) =
    (Definedness *)world_thread.tool.state;

static void world_on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    u64 fixup = guest_access_fixup((u64)uc->uc_mcontext.gregs[REG_RIP]);
    (void)info;
    if (!fixup) {
        signal(sig, SIG_DFL);
        return;
    }
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)fixup;
}

static void world_map(u64 start, u64 size)
{
    void *at = mmap((void *)PAGE_DOWN(start), PAGE_UP(start + size) - PAGE_DOWN(start),
                    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                    0);
    CHECK(at == (void *)PAGE_DOWN(start));
}

static inline GuestAddr world_heap_map(u64 size, u64 alignment)
{
    (void)size;
    (void)alignment;
    return 0;
}

static inline void world_heap_unmap(GuestAddr start, u64 size)
{
    (void)start;
    (void)size;
}

static void world_start(void)
{
    static bool started;
    if (started)
        return;
    started = true;
    struct sigaction action = {.sa_sigaction = world_on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    world_map(ARENA_START, ARENA_BYTES);
    u64 shadow = (u64)shadow_of(ARENA_START);
    world_map(shadow, ARENA_BYTES);
    // The U map of what is around is there too, as in shadow.c; and what is around is nobody's, also
    // where its shadow is in a page with the arena's.
    world_map((u64)u_bits_of(ARENA_START) - PAGE_SIZE, ARENA_BYTES / 8 + 2 * PAGE_SIZE);
    shadow_make_noaccess(PAGE_DOWN(shadow) - SHADOW_OFFSET, shadow - PAGE_DOWN(shadow));
    shadow_make_noaccess(ARENA_START + ARENA_BYTES,
                         PAGE_UP(shadow + ARENA_BYTES) - (shadow + ARENA_BYTES));
    world_thread.tool.thread = &world_memcheck;
    static const Options options = {.undef_value_errors = true};
    memcheck_options = &options;
    HeapOptions heap; // empty: reports ask it what an address is
    heap_defaults(&heap);
    heap.hooks = (HeapHooks){.map = world_heap_map, .unmap = world_heap_unmap};
    CHECK(heap_init(&heap));
    world_thread.gpr[RSP] = 0x1000; // no stack is near
    thread_ctx.tool.thread = &world_memcheck; // of the quick forms
}

// --- the model
typedef struct Model {
    u8 data[ARENA_BYTES], v[ARENA_BYTES], u[ARENA_BYTES];
    Told told;
    bool fault;
    bool result_unknown;
} Model;

WORLD_FUNCTION void world_to_model(Model *m)
{
    memset(m, 0, sizeof(*m));
    memcpy(m->data, (void *)ARENA_START, ARENA_BYTES);
    memcpy(m->v, shadow_of(ARENA_START), ARENA_BYTES);
    for (u64 i = 0; i < ARENA_BYTES; i++)
        m->u[i] = *u_bits_of(ARENA_START + i) >> ((ARENA_START + i) & 7) & 1;
}

static bool model_has(const Model *m, GuestAddr at)
{
    (void)m;
    return at >= ARENA_START && at < ARENA_START + ARENA_BYTES;
}

// An element as a plain loop reads it.
WORLD_FUNCTION bool model_read(Model *m, GuestAddr at, u32 element, u64 *ret_value, u64 *ret_v)
{
    bool bad = false;
    *ret_value = *ret_v = 0;
    for (u32 i = 0; i < element; i++) {
        bool there = model_has(m, at + i);
        if (!there)
            m->fault = true;
        if (!there || m->u[at + i - ARENA_START])
            bad = true;
        if (!there)
            continue;
        *ret_value |= (u64)m->data[at + i - ARENA_START] << 8 * i;
        *ret_v |= (u64)m->v[at + i - ARENA_START] << 8 * i;
    }
    if (bad && !m->told.read)
        m->told.read = at;
    if (bad)
        *ret_v = 0;
    return !m->fault;
}

WORLD_FUNCTION bool model_same(Model *m, u64 a, u64 a_v, u64 b, u64 b_v)
{
    if ((a ^ b) & ~(a_v | b_v))
        return false;
    if (a_v | b_v)
        m->told.condition = true;
    return a == b;
}

// Reads it all, then writes it all.
WORLD_FUNCTION void model_move(Model *m, GuestAddr to, GuestAddr from, u64 size, u32 element)
{
    static u8 data[ARENA_BYTES], v[ARENA_BYTES];
    for (u64 i = 0; i < size; i++) {
        if (!model_has(m, from + i) || !model_has(m, to + i)) {
            m->fault = true;
            return;
        }
        u64 k = from + i - ARENA_START;
        data[i] = m->data[k];
        v[i] = m->u[k] ? 0 : m->v[k];
        if (m->u[k] && !m->told.read)
            m->told.read = from + i - i % element;
    }
    for (u64 i = 0; i < size; i++) {
        u64 k = to + i - ARENA_START;
        m->data[k] = data[i];
        if (m->u[k] && !m->told.write)
            m->told.write = to + i - i % element;
        if (!m->u[k])
            m->v[k] = v[i];
    }
}

WORLD_FUNCTION void model_set(Model *m, GuestAddr to, u64 value, u64 v, u64 count, u32 element)
{
    for (u64 i = 0; i < count * element; i++) {
        if (!model_has(m, to + i)) {
            m->fault = true;
            return;
        }
        u64 k = to + i - ARENA_START;
        m->data[k] = (u8)(value >> i % element * 8);
        if (m->u[k] && !m->told.write)
            m->told.write = to + i - i % element;
        if (!m->u[k])
            m->v[k] = (u8)(v >> i % element * 8);
    }
}

// --- chance
static u64 world_seed = 1;
static u64 chance(u64 below)
{
    world_seed = world_seed * 6364136223846793005ull + 1442695040888963407ull;
    return (world_seed >> 33) % below;
}

// Fills the arena. Few letters, so that searches and comparisons get somewhere.
typedef struct Mixture {
    u32 end_per_1000;       // elements that are 0
    u32 undefined_per_1000; // runs of undefined bytes
    u32 bad_per_1000;       // runs that may not be touched
    u32 element;
    u64 from, to;           // the part of the arena that changes
} Mixture;

WORLD_FUNCTION void world_fill(const Mixture *mix)
{
    static const u8 letters[] = "aabbcABI\x01";
    for (u64 i = mix->from; i < mix->to; i += mix->element) {
        GuestAddr at = ARENA_START + i;
        u32 value = chance(1000) < mix->end_per_1000 ? 0 : letters[chance(sizeof(letters) - 1)];
        if (mix->element == 4 && chance(40) == 0)
            value |= 0x80000000u;
        memcpy((void *)at, &value, mix->element);
    }
    shadow_make_defined(ARENA_START + mix->from, mix->to - mix->from);
    for (u64 i = mix->from; i < mix->to; i++) {
        GuestAddr at = ARENA_START + i;
        u64 run = min_u64(1 + chance(20), mix->to - i);
        if (chance(1000) < mix->undefined_per_1000) {
            u8 v = chance(4) ? 0xff : (u8)(1u << chance(8));
            memset(shadow_of(at), v, run);
            i += run;
        } else if (chance(1000) < mix->bad_per_1000) {
            shadow_make_noaccess(at, run);
            i += run;
        }
    }
}

static const ToolFunction *world_function(const char *name)
{
    for (u32 i = 0; i < MEMCHECK_FUNCTIONS; i++) {
        if (strcmp(memcheck_functions[i].name, name) == 0)
            return &memcheck_functions[i];
    }
    FAIL("%s is not in the table", name);
}

static u64 world_quick_count; // calls that the quick form has done

// Calls the function, as the engine does: its quick form first, if all registers are defined.
// *ret_call tells whether it has declined.
WORLD_FUNCTION u64 world_call(const char *name, const u64 args[4], ToolCall *ret_call)
{
    memset(&told, 0, sizeof(told));
    *ret_call = (ToolCall){.function = world_function(name), .entry = 0x401000};
    for (unsigned i = 0; i < 4; i++)
        ret_call->args[i] = args[i];
    ToolQuickFn *quick = ret_call->function->quick;
    thread_ctx.gpr[RSP] = world_thread.gpr[RSP];
    u64 result = quick && !*(u64 *)world_thread.tool.state
                     ? quick(args[0], args[1], args[2], args[3])
                     : TOOL_QUICK_NO;
    if (result != TOOL_QUICK_NO) {
        world_quick_count++;
        return result;
    }
    return ret_call->function->replace(&world_thread, ret_call);
}

#endif
