// SPDX-License-Identifier: MIT
//
// Choice of the instructions that form a block, and its frame: entry prefix,
// body, exit stubs.
#include "engine/translate/translate.h"

#include "base/pkru_x64.h"
#include "engine/aspace/aspace.h"
#include "engine/gateway/gateway.h"
#include "engine/landings/landings.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"
#include "engine/translate/builder.h"
#include "engine/translate/entries_x64.h"

_Static_assert(BLOCK_MARKS_MAX < 1 << 12 && BLOCK_EXITS_MAX <= UINT8_MAX, "a Block holds them");

EmitAddresses *translate_addresses;
TranslateStats translate_stats;
static unsigned block_insns_max = 48;

void translate_init(unsigned max_insns, bool other_entries)
{
    decode_init();
    entries_init(other_entries);
    aspace_expects_words = true;
    if (max_insns && max_insns < BLOCK_INSNS_MAX)
        block_insns_max = max_insns;
}

size_t translate_code_room(void)
{
    return tool->version ? BLOCK_CODE_ROOM_GUARDED : BLOCK_CODE_ROOM;
}

// ------------------------------------------------------------------ builder

static void add_mark(Builder *b, u16 spilled, bool boundary)
{
    Block *block = b->block;
    u16 offset = (u16)(b->e.pc - code_at(block->code));
    CodeMark *last = b->mark_count ? &b->marks[b->mark_count - 1] : NULL;
    if (last && last->host_offset == offset)
        b->mark_count--; // it described nothing
    ASSERT(b->mark_count < BLOCK_MARKS_MAX);
    b->marks[b->mark_count++] = (CodeMark){
        .host_offset = offset,
        .spilled = spilled == MARK_NOWHERE ? spilled : spilled | b->held,
        .boundary = boundary,
        .guest_delta = b->insn ? (i32)(b->insn->pc - block->pc) : 0,
    };
}

void builder_mark(Builder *b, bool boundary)
{
    bool is_whole = b->whole_to && b->insn <= b->whole_to;
    add_mark(b, b->spilled, boundary && !b->spilled && !b->held && !is_whole);
}

void builder_mark_nowhere(Builder *b)
{
    add_mark(b, MARK_NOWHERE, false);
}

void builder_spill(Builder *b, unsigned reg)
{
    x64_mov_fs_reg(&b->e, CTX_SPILL(reg), reg);
    b->spilled |= (u16)(1u << reg);
    builder_mark(b, false);
}

void builder_unspill(Builder *b, unsigned reg)
{
    x64_mov_reg_fs(&b->e, reg, CTX_SPILL(reg));
    b->spilled &= (u16)~(1u << reg);
    builder_mark(b, false);
}

void builder_forget_spill(Builder *b, unsigned reg)
{
    b->spilled &= (u16)~(1u << reg);
    builder_mark(b, false);
}

void builder_exit(Builder *b, X64Branch branch, GuestAddr target)
{
    Block *block = b->block;
    ASSERT(block->exit_count < BLOCK_EXITS_MAX);
    Exit *x = cache_exit(block->first_exit + block->exit_count++);
    bool is_jump = b->insn->lowering != LOWER_CALL;
    *x = (Exit){.target = (i64)target, .from = cache_number(block)};
    if (block->version & VERSION_STEPPED ||
        (tool->exit_version && !tool->exit_version(b, &x->version)))
        x->version = EXIT_DYNAMIC;
    if (is_jump && redirect_is_own_entry(b->insn->pc, target))
        x->version |= VERSION_ORIGINAL;
    x->site = (u16)(x64_link_site(&b->e, branch, b->e.pc) - code_at(block->code));
}

// ------------------------------------------------------- choosing instructions

static bool already_in_block(const Builder *b, GuestAddr pc)
{
    for (unsigned i = 0; i < b->insn_count; i++) {
        if (b->insns[i].pc == pc)
            return true;
    }
    return false;
}

// Whether a direct jump is worth following rather than linking to.
static bool worth_following(const Builder *b, GuestAddr target, u32 version)
{
    i64 distance = (i64)(target - b->block->pc);
    return distance == (distance << 34 >> 34) // marks hold 31 bits
           && b->run_count < BLOCK_RUNS_MAX - 1 && !already_in_block(b, target) &&
           !cache_find(target, version);
}

static FetchResult decode_at(GuestAddr pc, u8 *taken, size_t room, Insn *ret_insn)
{
    if (LIKELY(room == DECODE_BYTES_MAX)) // by moves, not by a call
        memcpy(taken, (const u8 *)pc, DECODE_BYTES_MAX);
    else
        memcpy(taken, (const u8 *)pc, room);
    switch (decode_shared(pc, taken, room, ret_insn)) {
    case DECODE_OK: return FETCH_OK;
    case DECODE_TRUNCATED: return FETCH_NO_ACCESS;
    case DECODE_TOO_LONG: return FETCH_TOO_LONG;
    case DECODE_BAD: break;
    }
    return FETCH_BAD_CODE;
}

static void end_run(Builder *b, GuestAddr start, GuestAddr end)
{
    if (start == end)
        return;
    b->runs[b->run_count].start = start;
    b->runs[b->run_count++].end = end;
    cache_note_source(b->block, start, end);
    aspace_guard_code(start, end);
}

// To ask once a page.
typedef struct BusyPage {
    GuestAddr page;
    bool known, busy;
} BusyPage;

static bool is_busy(BusyPage *b, GuestAddr pc)
{
    if (!b->known || b->page != PAGE_DOWN(pc))
        *b = (BusyPage){PAGE_DOWN(pc), true, aspace_code_is_busy(pc)};
    return b->busy;
}

// On a page whose blocks check themselves, a store may change the instruction
// behind it: the block ends there, and the next one checks again.
static bool writes_memory(const Insn *insn)
{
    ToolAccess access[8];
    unsigned n = tool_accesses(insn, access, ARRAY_LEN(access));
    bool writes = false;
    for (unsigned i = 0; i < n; i++)
        writes |= access[i].writes;
    return writes;
}

// mov ss holds back the trap behind it until the next instruction is over.
static bool loads_ss(const Insn *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_MOV && insn->modrm_at &&
           insn->bytes[insn->modrm_at - 1] == 0x8e && (insn->bytes[insn->modrm_at] >> 3 & 7) == 2;
}

// A few instructions more than there should be, where a cut would part flags from their return.
static bool is_cut_late(const Builder *b, unsigned insns_max)
{
    enum { MORE_MAX = 6 };
    return insns_max > 1 && b->insn_count < insns_max + MORE_MAX && ends_with_idle_flags(b);
}

// Fills b->insns from b->next_pc on. Stops before the first instruction that
// cannot be fetched; if that is the very first one, says why.
static FetchResult collect_once(Builder *b, u32 version, GuestAddr *ret_fault)
{
    GuestAddr pc = b->next_pc;
    __builtin_prefetch((const u8 *)pc + 64);
    GuestAddr end = 0; // of the executable range around pc
    GuestAddr run_start = pc;
    GuestAddr decided_by = 0; // the end of the bytes of this run that matter
    FetchResult result = FETCH_OK;
    BusyPage page = {0};
    unsigned insns_max = version & VERSION_STEPPED ? 1 : block_insns_max;
    if (version && tool->dirty_insns_max && tool->dirty_insns_max < insns_max)
        insns_max = tool->dirty_insns_max;
    while (b->insn_count < insns_max || is_cut_late(b, insns_max)) {
        if (b->insn_count > 0 && redirect_is_hooked(pc))
            break; // F2
        if ((pc >= end || end == 0) && !aspace_executable(pc, &end)) {
            *ret_fault = pc;
            result = FETCH_NO_ACCESS;
            break;
        }
        Insn *insn = &b->insns[b->insn_count];
        size_t room = min_u64(end - pc, DECODE_BYTES_MAX);
        result = decode_at(pc, b->taken[b->insn_count], room, insn);
        if (result != FETCH_OK) {
            *ret_fault = result == FETCH_NO_ACCESS ? end : pc;
            break;
        }
        b->insn_count++;
        if (insn->lowering == LOWER_JCC || insn->lowering == LOWER_CALL) // see link_known_targets()
            cache_expect(insn->target, version);
        decided_by = max_u64(decided_by, pc + insn->decided_by);
        pc += insn->len;
        if (insns_max == 1 && (version & VERSION_STEPPED) && loads_ss(insn))
            insns_max = 2;
        if (insn->lowering == LOWER_JMP && b->insn_count < insns_max &&
            worth_following(b, insn->target, version)) {
            end_run(b, run_start, decided_by);
            run_start = pc = decided_by = insn->target; // an empty run, if it ends here
            end = 0;
        } else if (insn_ends_block(insn) ||
                   (insn->lowering == LOWER_JCC && cache_find(pc, version)) ||
                   (is_busy(&page, insn->pc) && writes_memory(insn))) {
            break;
        }
    }
    if (b->insn_count == 0)
        return result;
    // Whatever stopped us is met again if the client ever gets there.
    end_run(b, run_start, decided_by);
    b->next_pc = pc;
    return FETCH_OK;
}

// Stores of other threads are noticed from the guard on, and what was decoded is from before it.
// The blocks of busy pages see for themselves.
static bool has_changed(const Builder *b)
{
    for (unsigned i = 0; i < b->insn_count; i++) {
        const Insn *insn = &b->insns[i];
        if (UNLIKELY(memcmp(insn->bytes, (const void *)insn->pc, insn->decided_by) != 0) &&
            !aspace_code_is_busy(insn->pc) && !aspace_code_is_busy(insn->pc + insn->len - 1))
            return true;
    }
    return false;
}

// A page that changes all the time becomes a busy one.
static FetchResult collect(Builder *b, u32 version, GuestAddr *ret_fault)
{
    GuestAddr pc = b->next_pc;
    for (;;) {
        decode_forget();
        b->insn_count = b->run_count = 0;
        b->next_pc = pc;
        FetchResult result = collect_once(b, version, ret_fault);
        if (result != FETCH_OK || LIKELY(!has_changed(b)))
            return result;
    }
}

// -------------------------------------------------------------------- frame

static bool is_looked_up(const Block *block, const Exit *x)
{
    return x->version == EXIT_DYNAMIC && !(block->version & VERSION_STEPPED);
}

static size_t stub_bytes(const Block *block, const Exit *x)
{
    if (is_looked_up(block, x))
        return EXIT_STUB_BYTES;
    return exit_is_call(exit_site(x)) ? CALL_STUB_BYTES : LINK_STUB_BYTES;
}

// Where unlinked exits lead, away from the blocks so that hot code stays dense:
//     [lea rsp, [rsp + 8]] ; mov dword fs:[exit_link], index ; jmp leave
// or, when the version of the target is known only then:
//     mov fs:[pc], target ; jmp version_exit
static void emit_exit_stubs(Builder *b)
{
    Block *block = b->block;
    size_t bytes = 0;
    for (u32 i = 0; i < block->exit_count; i++)
        bytes += stub_bytes(block, cache_exit(block->first_exit + i));
    CodePtr at = cache_reserve_cold(block, bytes);
    ASSERT(at); // BLOCK_CODE_ROOM counts them
    Emitter cold = {.pc = at, .end = at + bytes};
    for (u32 i = 0; i < block->exit_count; i++) {
        u32 index = block->first_exit + i;
        Exit *x = cache_exit(index);
        x->stub = code_ref(cold.pc);
        if (is_looked_up(block, x)) {
            x64_mov_fs_imm64(&cold, CTX(pc), exit_target(x));
            x64_jmp_to(&cold, gateway_version_exit());
        } else {
            bool is_call = exit_is_call(exit_site(x));
            if (is_call)
                x64_lea_reg_mem(&cold, QWORD, RSP, x64_at(RSP, 8));
            x64_mov_fs_imm32(&cold, CTX(gateway.exit_link), index);
            x64_jmp_to(&cold, gateway_leave(is_call ? EXIT_CALL : EXIT_LINK));
        }
        CodePtr site = exit_site(x);
        i32 distance = (i32)(code_at(x->stub) - (site + 4));
        memcpy(site, &distance, 4);
    }
}

static void link_known_targets(Block *block)
{
    for (u32 i = 0; i < block->exit_count; i++) {
        Exit *x = cache_exit(block->first_exit + i);
        if (x->version & EXIT_DYNAMIC)
            continue;
        Block *to = cache_find(exit_target(x), x->version);
        if (to && exit_is_call(exit_site(x)) && !to->call_entry)
            translate_add_entry(to, ENTRY_CALL);
        if (to)
            cache_link(block->first_exit + i, to);
    }
}

// Where returns go through r11, it is stored whenever the client changes it, so that they need not.
static bool writes_r11(const Insn *insn)
{
    InsnForm room;
    return tool->needs & TOOL_LOOSE_FLAGS && insn_form(insn, &room)->gprs_written >> R11 & 1;
}

// The instruction and what the trace, the tool and the call stack insert around it.
static void emit_insn(Builder *b, unsigned index)
{
    if (index > 0) // what stands before the first instruction belongs to it
        builder_mark(b, true);
    if (UNLIKELY(trace_bits & TRACE_CALLS) && trace_wants_call(b->insn))
        tool_call(b, trace_on_call, b->insn->pc);
    if (tool->insn)
        tool->insn(b, b->insn);
    bool followed = b->insn->lowering == LOWER_JMP && index + 1 < b->insn_count;
    callstack_note_frame(b);
    bool loads_rsp = callstack_watches(b);
    if (loads_rsp)
        emit_callstack_before_load(b);
    if (!followed)
        lower_insn(b);
    if (b->fallthrough && writes_r11(b->insn))
        x64_mov_fs_reg(&b->e, CTX_SPILL(R11), R11);
    if (loads_rsp)
        emit_callstack_after_load(b);
    if (b->fallthrough && tool->insn_done)
        tool->insn_done(b, b->insn);
    ASSERT(b->spilled == 0 || !b->fallthrough);
    b->spilled = 0;
}

static bool has_room_for_insn(Builder *b)
{
    u32 more = tool->insertions ? tool->insertions(b, b->insn) : 0;
    return emit_room(&b->e) >= INSN_ROOM + more * TOOL_INSERTION_BYTES &&
           b->guard_count + INSN_GUARDS_MAX <= BLOCK_GUARDS_MAX &&
           b->mark_count + INSN_MARKS + more * TOOL_INSERTION_MARKS <= BLOCK_MARKS_MAX;
}

static void emit_body(Builder *b)
{
    b->block->body = code_ref(b->e.pc);
    b->fallthrough = true;
    b->insn = &b->insns[0];
    builder_mark(b, true);
    for (unsigned i = 0; i < b->run_count; i++) {
        if (aspace_code_is_busy(b->runs[i].start) || aspace_code_is_busy(b->runs[i].end - 1))
            emit_self_check(b, b->runs[i].start, b->runs[i].end);
    }
    if (!intercept(b)) {
        builder_mark_nowhere(b);
        return;
    }
    if (tool->needs & TOOL_NEEDS_FLAGS)
        find_live_flags(b);
    if (tool->block)
        tool->block(b, b->insns, b->insn_count);
    for (unsigned i = 0; i < b->insn_count; i++) {
        b->insn = &b->insns[i];
        if (!has_room_for_insn(b)) {
            if (tool->cut)
                tool->cut(b, b->insn);
            b->next_pc = b->insn->pc;
            b->insn_count = i;
            break;
        }
        emit_insn(b, i);
    }
    if (b->fallthrough) {
        builder_mark_nowhere(b);
        builder_exit(b, X64_JMP, b->next_pc);
    }
    builder_mark_nowhere(b);
}

// *ret_landing: of a block that falls, for the caller to open when there is code behind it.
static Block *translate_one(GuestAddr pc, u32 version, EntryKind entry, FetchResult *ret_result,
                            GuestAddr *ret_fault, CodePtr *ret_landing)
{
    static Builder builder; // the engine lock is held
    Builder *b = &builder;
    u64 start = __builtin_ia32_rdtsc();

    size_t code_room = translate_code_room();
    size_t stubs_room = EXIT_STUBS_ROOM + (tool->version ? GUARD_STUBS_ROOM : 0);
    b->block = cache_reserve(code_room, BLOCK_EXITS_MAX, BLOCK_MARKS_MAX);
    b->may_fall = cache_has_room_behind(b->block, code_room, BLOCK_EXITS_MAX, BLOCK_MARKS_MAX);
    b->block->pc = pc;
    b->block->version = version;
    b->block->state = tool->version_state ? tool->version_state(version & VERSION_NUMBER) : 0;
    CodePtr code = code_at(b->block->code);
    b->e = (Emitter){.pc = code, .end = code + code_room - stubs_room,
                     .addresses = translate_addresses};
    b->mark_count = 0;
    b->guard_count = 0;
    b->insn = NULL;
    b->whole_to = NULL;
    b->spilled = b->held = 0;
    b->changes_version = false;
    b->has_fs_base = false;
    b->next_pc = pc;
    *ret_result = collect(b, version & ~VERSION_ORIGINAL, ret_fault);
    if (*ret_result != FETCH_OK) {
        b->block->retired = true; // another try may have noted its source
        return NULL;
    }
    fs_base_look(b);

    if (entry != ENTRY_NONE) {
        builder_mark_nowhere(b);
        emit_entry(&b->e, b->block, entry);
    }
    emit_body(b);
    emit_exit_stubs(b);
    emit_guard_stubs(b);
    b->block->insn_count = (u8)b->insn_count;
    b->block->code_size = (u16)(b->e.pc - code);
    cache_commit(b->block, b->marks, b->mark_count);
    *ret_landing = b->landing;
    if (b->block->landing && !b->block->falls)
        landing_open(b->block->landing, b->landing);
    if (!(version & VERSION_STEPPED))
        link_known_targets(b->block);

    translate_stats.blocks++;
    translate_stats.instructions += b->insn_count;
    translate_stats.ticks += __builtin_ia32_rdtsc() - start;
    if (UNLIKELY(trace_bits & TRACE_BLOCKS))
        trace_block(b->block, b->insns, b->insn_count);
    return b->block;
}

// A block whose landing goes on where nothing could be translated.
static void end_fall(Block *block, GuestAddr pc)
{
    enum { ROOM = 64 };
    CodePtr at = code_at(block->code) + block->code_size;
    Emitter e = {.pc = at, .end = at + ROOM};
    x64_mov_fs_imm64(&e, CTX(pc), pc);
    x64_jmp_to(&e, gateway_leave(EXIT_RESUME));
    cache_lengthen(block, (u32)(e.pc - at));
    block->falls = false;
}

static Block *translate_chain(GuestAddr pc, u32 version, EntryKind entry, FetchResult *ret_result,
                              GuestAddr *ret_fault)
{
    CodePtr landing, landing_behind;
    Block *first = translate_one(pc, version, entry, ret_result, ret_fault, &landing);
    for (Block *block = first; block && block->falls; landing = landing_behind) {
        GuestAddr next = landing_pc(block->landing), fault;
        FetchResult result;
        Block *behind = translate_one(next, 0, ENTRY_NONE, &result, &fault, &landing_behind);
        if (!behind)
            end_fall(block, next);
        // Threads with an older frame of this call may return here from now on.
        if (!block->retired)
            landing_open(block->landing, landing);
        block = behind;
    }
    return first;
}

// What the tool wants to be made anew: instructions or, if there are too many, the pages of all
// from the lowest to the highest. Engine lock.
static struct {
    GuestAddr insns[64];
    u32 count;
    GuestAddr low, high;
} stale;

void tool_make_anew(GuestAddr pc)
{
    stale.low = stale.count ? min_u64(stale.low, pc) : pc;
    stale.high = stale.count ? max_u64(stale.high, pc) : pc;
    if (stale.count < ARRAY_LEN(stale.insns))
        stale.insns[stale.count] = pc;
    stale.count++;
}

static bool drop_stale(void)
{
    u32 count = stale.count;
    stale.count = 0;
    if (UNLIKELY(count > ARRAY_LEN(stale.insns)))
        cache_invalidate(stale.low, stale.high + 1);
    for (u32 i = 0; i < count && count <= ARRAY_LEN(stale.insns); i++)
        cache_invalidate_insn(stale.insns[i]);
    return drop_blocks_of_new_region() || count;
}

Block *translate_block(GuestAddr pc, u32 version, EntryKind entry, FetchResult *ret_result,
                       GuestAddr *ret_fault)
{
    Block *block;
    u32 keys = pkru_open(); // what may be executed need not be readable
    do { // the loop ends because each round adds at least one fact, and no fact is forgotten
        block = translate_chain(pc, version, entry, ret_result, ret_fault);
    } while (drop_stale() && block && block->retired);
    pkru_write(keys);
    return block;
}
