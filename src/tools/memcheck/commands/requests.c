// SPDX-License-Identifier: MIT
//
// The client requests of memcheck.h, and those of valgrind.h about the heap. Numbers,
// results and errors are the incumbent's; libraries have them compiled in.
//
// Every address and size is the client's word: nothing is marked or read that is not mapped.
#include <string.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/commands/commands.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/origins/origins.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

#define GET_REGISTER_VBITS 0x4d550010
#define MC(n) (('M' << 24 | 'C' << 16) + (n))

u32 requests_context(ToolThread *thread)
{
    return tool_context(thread, thread->pc);
}

// ------------------------------------------------------------------ what is mapped

void requests_for_mapped(GuestAddr start, u64 size, MappedVisit *fn, void *data)
{
    GuestAddr end = start + size < start ? ~0ull : start + size;
    end = min_u64(end, SHADOWED_END);
    lock_acquire(&engine_lock);
    for (const Mapping *m = aspace_next(NULL); m && m->start < end; m = aspace_next(m)) {
        GuestAddr low = max_u64(m->start, start), high = min_u64(m->end, end);
        if (low < high && shadow_is_mapped(low, high - low))
            fn(data, low, high - low);
    }
    lock_release(&engine_lock);
}

static void add_size(void *data, GuestAddr start, u64 size)
{
    (void)start;
    *(u64 *)data += size;
}

bool requests_is_mapped(GuestAddr start, u64 size)
{
    u64 mapped = 0;
    requests_for_mapped(start, size, add_size, &mapped);
    return mapped == size;
}

// ------------------------------------------------------------------ marking

static void mark_noaccess(void *data, GuestAddr start, u64 size)
{
    (void)data;
    constants_forget(start, start + size);
    shadow_make_noaccess(start, size);
}

// The same, until the frame is left if it is on the thread's stack.
static void forbid(void *data, GuestAddr start, u64 size)
{
    const MemcheckThread *mt = memcheck_thread(data);
    mark_noaccess(NULL, start, size);
    if (is_at_home(mt, start + 1) && is_at_home(mt, start + size))
        shadow_forbid_stack(start, size);
}

static void mark_undefined(void *data, GuestAddr start, u64 size)
{
    (void)data;
    constants_forget(start, start + size);
    shadow_make_undefined(start, size);
}

static void mark_defined(void *data, GuestAddr start, u64 size)
{
    (void)data;
    shadow_make_defined(start, size);
}

static void define_addressable(void *data, GuestAddr start, u64 size)
{
    shadow_define_touchable(data, start, size);
}

static u64 do_make(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    static MappedVisit *const marks[] = {forbid, mark_undefined, mark_defined};
    u64 which = args[0] - MC(0);
    (void)otherwise;
    requests_for_mapped(args[1], args[2], marks[which], thread);
    if (which == 1)
        origins_made_by_client(args[1], args[2], requests_context(thread));
    return ~0ull;
}

static u64 do_make_defined_if(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    requests_for_mapped(args[1], args[2], define_addressable, thread);
    return ~0ull;
}

// ------------------------------------------------------------------ checking

static void report_check(ToolThread *thread, GuestAddr address, bool unaddressable)
{
    RelayPart parts[MEMCHECK_PARTS_MAX + 1];
    u32 count = describe_address(thread, address, parts);
    if (!unaddressable) {
        count += origins_part(origins_of_memory(thread, address), &parts[count]);
        __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    }
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_CLIENT_CHECK,
        .client_check = {.unaddressable = unaddressable},
        .context = requests_context(thread),
        .part_count = count,
        .parts = parts,
        .key = unaddressable,
    });
}

typedef struct Search {
    ToolThread *thread;
    GuestAddr next; // everything before it is mapped
    RequestSearch found;
} Search;

static void search_part(void *data, GuestAddr start, u64 size)
{
    Search *search = data;
    GuestAddr end = start + size;
    if (start > search->next && search->found.noaccess == ~0ull)
        search->found.noaccess = search->next; // a hole
    search->next = end;
    if (search->found.noaccess == ~0ull) {
        GuestAddr at = shadow_first_noaccess(search->thread, start, size);
        if (at < end)
            search->found.noaccess = at;
    }
    for (GuestAddr at = start; at < end && search->found.undefined == ~0ull; at++) {
        at = shadow_first_undefined(at, end - at);
        if (at < end && shadow_first_noaccess(search->thread, at, 1) != at)
            search->found.undefined = at;
    }
}

RequestSearch requests_search(ToolThread *thread, GuestAddr start, u64 size)
{
    Search search = {.thread = thread, .next = start, .found = {~0ull, ~0ull}};
    requests_for_mapped(start, size, search_part, &search);
    if (search.next < start + size && search.found.noaccess == ~0ull)
        search.found.noaccess = search.next;
    return search.found;
}

void requests_answered(ToolThread *thread, GuestAddr start, u64 size)
{
    RequestSearch search = requests_search(thread, start, size);
    if (search.noaccess != ~0ull)
        report_check(thread, search.noaccess, true);
    requests_for_mapped(start, size, define_addressable, thread);
}

static u64 do_check_addressable(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    RequestSearch search = requests_search(thread, args[1], args[2]);
    if (search.noaccess == ~0ull)
        return 0;
    report_check(thread, search.noaccess, true);
    return search.noaccess;
}

static u64 do_check_defined(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    RequestSearch search = requests_search(thread, args[1], args[2]);
    if (search.undefined != ~0ull)
        report_check(thread, search.undefined, false);
    if (search.noaccess != ~0ull)
        report_check(thread, search.noaccess, true);
    GuestAddr first = min_u64(search.undefined, search.noaccess);
    return first == ~0ull ? 0 : first;
}

// ------------------------------------------------------------------ V bits

enum { VBITS_DONE = 1, VBITS_BAD_ADDRESS = 3, VBITS_SIZE_MAX = 1 << 30 };

static bool is_addressable(ToolThread *thread, GuestAddr start, u64 size)
{
    return size <= VBITS_SIZE_MAX && requests_search(thread, start, size).noaccess == ~0ull;
}

static u64 do_vbits(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    bool sets = args[0] == MC(9);
    GuestAddr data = args[1], vbits = args[2];
    u64 size = args[3];
    (void)otherwise;
    if (!is_addressable(thread, data, size) || !is_addressable(thread, vbits, size))
        return VBITS_BAD_ADDRESS;
    if (sets) {
        lock_acquire(&engine_lock);
        constants_forget(data, data + size);
        lock_release(&engine_lock);
        if (!guest_read(vbits, shadow_of(data), size))
            return VBITS_BAD_ADDRESS;
    } else {
        for (u64 i = 0; i < size; i++) {
            u8 v;
            shadow_read(data + i, 1, &v);
            if (!guest_write(vbits + i, &v, 1))
                return VBITS_BAD_ADDRESS;
        }
        shadow_make_defined(vbits, size);
    }
    return VBITS_DONE;
}

// ------------------------------------------------------------------ names and silence

static u64 do_create_block(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    NamedBlock block = {.start = args[1], .size = args[2], .context = requests_context(thread)};
    (void)otherwise;
    if (args[1] == 0 || args[2] == 0)
        return 0;
    if (guest_read_string(args[3], block.name, sizeof(block.name)) < 0)
        strcpy(block.name, "block");
    return (u64)(i64)ranges_name(&block);
}

static u64 do_discard(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)thread;
    (void)otherwise;
    return !ranges_forget_name(args[1]);
}

static u64 do_report_in_range(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)thread;
    (void)otherwise;
    return ranges_set_ignored(args[1], args[2], args[0] == MC(14), true);
}

// ------------------------------------------------------------------ leaks

static u64 do_leak_check(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    static const LeakDelta deltas[] = {LEAK_ANY, LEAK_INCREASED, LEAK_CHANGED, LEAK_NEW};
    LeakWish wish;
    (void)otherwise;
    leaks_default_wish(&wish);
    wish.full = args[1] == 0;
    wish.delta = args[2] < ARRAY_LEN(deltas) ? deltas[args[2]] : LEAK_ANY;
    leaks_check(thread, &wish);
    return 0;
}

static u64 do_count_leaks(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    bool blocks = args[0] == MC(12);
    const LeakTotals *t = &leaks_totals;
    const LeakAmount amounts[] = {
        {t->kinds[LOSS_DEFINITE].blocks + t->kinds[LOSS_INDIRECT].blocks,
         t->kinds[LOSS_DEFINITE].bytes + t->kinds[LOSS_INDIRECT].bytes},
        t->kinds[LOSS_POSSIBLE],
        t->kinds[LOSS_REACHABLE],
        t->suppressed,
    };
    (void)otherwise;
    for (unsigned i = 0; i < ARRAY_LEN(amounts); i++) {
        u64 value = blocks ? amounts[i].blocks : amounts[i].bytes;
        if (guest_write(args[1 + i], &value, sizeof(value)))
            requests_answered(thread, args[1 + i], sizeof(value));
    }
    return 0;
}

// ------------------------------------------------------------------ the program's own blocks

static HeapThread *heap_of(ToolThread *thread)
{
    return memcheck_thread(thread)->heap;
}

static void report_heap(ToolThread *thread, u32 kind, GuestAddr address)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = kind,
        .context = requests_context(thread),
        .part_count = describe_address(thread, address, parts),
        .parts = parts,
    });
}

static void report_mismatched(ToolThread *thread, GuestAddr address, const HeapBlock *block)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_MISMATCHED_FREE,
        .context = requests_context(thread),
        .part_count = describe_block(block, address, parts),
        .parts = parts,
    });
}

static void mark_redzones(GuestAddr start, u64 size, u64 redzone)
{
    if (redzone == 0 || redzone > HEAP_REDZONE_MAX)
        return;
    requests_for_mapped(start - redzone, redzone, mark_noaccess, NULL);
    requests_for_mapped(start + size, redzone, mark_noaccess, NULL);
}

// Whether a block that is announced is none of the tool's business: a library has cut it from
// memory that an allocator which is not watched gives out again without a word.
static bool is_unwatched(GuestAddr start)
{
    HeapBlock block;
    return UNLIKELY(tool_leaves_allocator()) && !heap_find(start, &block);
}

static u64 do_malloclike(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    GuestAddr start = args[1];
    u64 size = args[2], redzone = args[3];
    (void)otherwise;
    if (!requests_is_mapped(start, size) || is_unwatched(start))
        return 0;
    if (heap_malloclike(heap_of(thread), start, size, (u32)min_u64(redzone, HEAP_REDZONE_MAX),
                        args[4] != 0, requests_context(thread)) == HEAP_OK)
        mark_redzones(start, size, redzone);
    return 0;
}

static u64 do_freelike(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    HeapBlock block;
    u32 context = requests_context(thread);
    (void)otherwise;
    if (is_unwatched(args[1]))
        return 0;
    HeapResult result = heap_freelike(heap_of(thread), args[1], context, &block);
    if (result == HEAP_NOT_A_BLOCK) // announced; what malloc gave is freed in a wrong way
        result = heap_free(heap_of(thread), args[1], HEAP_CUSTOM, context, &block);
    if (result == HEAP_OK)
        return 0;
    if (result == HEAP_MISMATCHED && memcheck_options->show_mismatched_frees)
        report_mismatched(thread, args[1], &block);
    if (result == HEAP_MISMATCHED)
        return 0;
    heap_count_refused_free();
    report_heap(thread, KIND_INVALID_FREE, args[1]);
    return 0;
}

static u64 do_resize(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    HeapBlock old;
    u64 size = args[3];
    (void)otherwise;
    if (is_unwatched(args[1]))
        return 0;
    if (!requests_is_mapped(args[1], size) ||
        heap_resize_inplace(heap_of(thread), args[1], size, requests_context(thread), &old) !=
            HEAP_OK)
        report_heap(thread, KIND_INVALID_FREE, args[1]);
    else
        mark_redzones(args[1], size, args[4]);
    return 0;
}

// ------------------------------------------------------------------ pools

// HEAP_NOT_A_BLOCK means the pool, or a chunk of it.
static u64 pool_result(ToolThread *thread, HeapResult result, GuestAddr pool, GuestAddr chunk)
{
    if (result == HEAP_OK)
        return 0;
    bool exists = heap_pool_exists(pool);
    report_heap(thread, exists && chunk ? KIND_INVALID_FREE : KIND_INVALID_MEM_POOL,
                exists && chunk ? chunk : pool);
    return 0;
}

static u64 do_pool_create(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    HeapResult result = heap_pool_create(args[1], (u32)min_u64(args[2], HEAP_REDZONE_MAX),
                                         args[3] != 0, (u32)args[4]);
    if (result == HEAP_MISMATCHED)
        report_heap(thread, KIND_INVALID_MEM_POOL, args[1]);
    return 0;
}

static u64 do_pool_destroy(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    u32 context = requests_context(thread);
    return pool_result(thread, heap_pool_destroy(heap_of(thread), args[1], context), args[1], 0);
}

static u64 do_pool_alloc(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    if (!requests_is_mapped(args[2], args[3]))
        return 0;
    HeapResult result = heap_pool_alloc(heap_of(thread), args[1], args[2], args[3],
                                        requests_context(thread));
    return result == HEAP_NOT_A_BLOCK ? pool_result(thread, result, args[1], 0) : 0;
}

static u64 do_pool_free(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    HeapBlock block;
    (void)otherwise;
    HeapResult result = heap_pool_free(heap_of(thread), args[1], args[2],
                                       requests_context(thread), &block);
    return pool_result(thread, result, args[1], args[2]);
}

static u64 do_pool_trim(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    HeapResult result = heap_pool_trim(heap_of(thread), args[1], args[2], args[3],
                                       requests_context(thread));
    return pool_result(thread, result, args[1], 0);
}

static u64 do_pool_move(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    return pool_result(thread, heap_pool_move(args[1], args[2]), args[1], 0);
}

static u64 do_pool_change(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)otherwise;
    if (!requests_is_mapped(args[3], args[4]))
        return 0;
    HeapResult result = heap_pool_change(args[1], args[2], args[3], args[4],
                                         requests_context(thread));
    return pool_result(thread, result, args[1], args[2]);
}

static u64 do_pool_exists(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    (void)thread;
    (void)otherwise;
    return heap_pool_exists(args[1]);
}

// ------------------------------------------------------------------ registers

// Numbers as in client.h.
enum {
    REGISTER_FLAGS = 16, REGISTER_MXCSR, REGISTER_X87_WORDS, REGISTER_MASK = 24,
    REGISTER_VECTOR = 32, REGISTER_X87 = 64, REGISTERS = 72,
};

// Where the V bits of a register are; NULL: there is no such register.
static const void *register_bits(ToolThread *thread, u64 number, u64 *ret_size)
{
    enum { STATUS_WORD = 2 };
    const Definedness *d = definedness_of(thread);
    u16 status;
    *ret_size = 8;
    if (number < REGISTER_FLAGS)
        return &d->gpr[number];
    if (number >= REGISTER_MASK && number < REGISTER_VECTOR)
        return &d->mask[number - REGISTER_MASK];
    if (number >= REGISTER_VECTOR && number < REGISTER_X87) {
        *ret_size = sizeof(d->vector[0]);
        return d->vector[number - REGISTER_VECTOR];
    }
    if (number >= REGISTER_X87 && number < REGISTERS) {
        memcpy(&status, thread->xsave + STATUS_WORD, sizeof(status));
        *ret_size = 10;
        return d->x87[((status >> 11) + number - REGISTER_X87) & 7];
    }
    switch (number) {
    case REGISTER_FLAGS: return &d->flags;
    case REGISTER_MXCSR: return &d->mxcsr;
    case REGISTER_X87_WORDS: return &d->x87_environment;
    default: return NULL;
    }
}

static u64 do_register_vbits(ToolThread *thread, const u64 args[6], u64 otherwise)
{
    u64 size;
    const void *bits = register_bits(thread, args[1], &size);
    if (!bits || args[3] < size || !is_addressable(thread, args[2], size) ||
        !guest_write(args[2], bits, size))
        return otherwise;
    shadow_make_defined(args[2], size);
    return size;
}

// ------------------------------------------------------------------ dispatch

typedef u64 RequestFn(ToolThread *thread, const u64 args[6], u64 otherwise);

static const struct {
    u32 number;
    RequestFn *fn;
} requests[] = {
    {MC(0), do_make},
    {MC(1), do_make},
    {MC(2), do_make},
    {MC(3), do_discard},
    {MC(4), do_check_addressable},
    {MC(5), do_check_defined},
    {MC(6), do_leak_check},
    {MC(7), do_count_leaks},
    {MC(8), do_vbits},
    {MC(9), do_vbits},
    {MC(10), do_create_block},
    {MC(11), do_make_defined_if},
    {MC(12), do_count_leaks},
    {MC(13), do_report_in_range},
    {MC(14), do_report_in_range},
    {GET_REGISTER_VBITS, do_register_vbits},
    {0x1301, do_malloclike},
    {0x1302, do_freelike},
    {0x1303, do_pool_create},
    {0x1304, do_pool_destroy},
    {0x1305, do_pool_alloc},
    {0x1306, do_pool_free},
    {0x1307, do_pool_trim},
    {0x1308, do_pool_move},
    {0x1309, do_pool_change},
    {0x130a, do_pool_exists},
    {0x130b, do_resize},
};

bool requests_run(ToolThread *thread, const u64 args[6], u64 *ret_result)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].number == args[0]) {
            *ret_result = requests[i].fn(thread, args, *ret_result);
            return true;
        }
    }
    return false;
}
