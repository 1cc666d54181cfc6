// SPDX-License-Identifier: MIT
//
// Instructions: insn(), branch() and access(), which call a function of the script from the block,
// and count_insn(), which lets the block count by itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/script.h"

// What a call from a block is told besides: one for each probe, instruction and access.
typedef struct Site {
    Probe *probe;
    MuninnAddress pc, target;
    uint32_t access, size;
    bool writes;
    char mnemonic[24];
    char text[96];
    struct Site *next; // of the same hash
} Site;

enum { SITE_CHAINS = 1 << 14 };
static Site *sites[SITE_CHAINS]; // all of this is used in block callbacks only
static unsigned call_flags;

// ---------------------------------------------------------------------------- counters

typedef struct Count {
    const Probe *probe;
    char label[32];
    MuninnCounter counter;
} Count;

static Count *counts;
static size_t count_count;
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *told; // of each counter: what the tables have; home_lock
static size_t told_count;

static MuninnCounter counter_of(const Probe *probe, const char *label)
{
    for (size_t i = 0; i < count_count; i++) {
        if (counts[i].probe == probe && strcmp(counts[i].label, label) == 0)
            return counts[i].counter;
    }
    pthread_mutex_lock(&counts_lock);
    Count *more = realloc(counts, (count_count + 1) * sizeof(*counts));
    MuninnCounter counter = muninn_counter();
    if (more) {
        counts = more;
        counts[count_count] = (Count){.probe = probe, .counter = counter};
        snprintf(counts[count_count].label, sizeof(counts->label), "%s", label);
        count_count++;
    }
    pthread_mutex_unlock(&counts_lock);
    return counter;
}

static const char *label_of(const Probe *probe, const MuninnInsn *insn)
{
    static const char *const classes[] = {
        [MUNINN_CLASS_OTHER] = "other",
        [MUNINN_CLASS_BRANCH] = "branch",
        [MUNINN_CLASS_JUMP] = "jump",
        [MUNINN_CLASS_JUMP_INDIRECT] = "indirect jump",
        [MUNINN_CLASS_CALL] = "call",
        [MUNINN_CLASS_CALL_INDIRECT] = "indirect call",
        [MUNINN_CLASS_RETURN] = "return",
        [MUNINN_CLASS_SYSCALL] = "system call",
    };
    switch (probe->pattern[0]) {
    case 'm': return muninn_insn_mnemonic(insn);
    case 'c': return classes[muninn_insn_class(insn)];
    case 'e': return muninn_insn_extension(insn);
    default:  return "";
    }
}

static bool move_count(Tables *to, const Count *count, uint64_t total)
{
    char name[128];
    uint8_t key[64] = {'t'};
    uint32_t length = (uint32_t)strlen(count->label);
    bool is_all = count->probe->pattern[0] == 'a';

    snprintf(name, sizeof(name), "instructions%s%s%s%s", is_all ? "" : " by ",
             is_all ? "" : count->probe->pattern, count->probe->object ? " in " : "",
             count->probe->object ? count->probe->object : "");
    memcpy(key + 1, &length, sizeof(length));
    memcpy(key + 5, count->label, length);
    return tables_add(to, name, TABLE_SUM, key, is_all ? 0 : 5 + length, (int64_t)total) ==
           TABLES_ADDED;
}

bool insns_count_moves(Tables *to)
{
    bool is_whole = true;
    pthread_mutex_lock(&counts_lock);
    if (told_count < count_count) {
        uint64_t *more = realloc(told, count_count * sizeof(*told));
        if (more) {
            memset(more + told_count, 0, (count_count - told_count) * sizeof(*told));
            told = more;
            told_count = count_count;
        }
    }
    for (size_t i = 0; i < told_count; i++) {
        uint64_t total = muninn_counter_total(counts[i].counter);
        if (total != told[i])
            is_whole &= move_count(to, &counts[i], total - told[i]);
        told[i] = total;
    }
    pthread_mutex_unlock(&counts_lock);
    return is_whole;
}

void insns_fork_child(void)
{
    if (!count_count)
        return;
    muninn_counters_reset();
    memset(told, 0, told_count * sizeof(*told));
}

// ---------------------------------------------------------------------------- sites

static Site *site_of(Probe *probe, const MuninnInsn *insn, uint32_t access)
{
    Site made = {
        .probe = probe,
        .pc = muninn_insn_address(insn),
        .target = muninn_insn_target(insn),
        .access = access,
    };
    uint64_t hash = (made.pc * 31 + access * 7 + probe->index) * 0x9e3779b97f4a7c15u;
    Site **chain = &sites[hash >> 50];

    muninn_insn_text(insn, made.text, sizeof(made.text));
    for (Site *site = *chain; site; site = site->next) {
        if (site->probe == probe && site->pc == made.pc && site->access == access &&
            strcmp(site->text, made.text) == 0)
            return site;
    }
    Site *site = malloc(sizeof(*site));
    if (!site)
        return NULL;
    snprintf(made.mnemonic, sizeof(made.mnemonic), "%s", muninn_insn_mnemonic(insn));
    made.next = *chain;
    *site = made;
    *chain = site;
    return site;
}

// ---------------------------------------------------------------------------- calls

static State *begin(MuninnThread *thread, const Site *site)
{
    State *state = muninn_thread_data(thread);
    Event event = {.kind = EVENT_INSN, .pc = site->pc, .word = site->mnemonic};
    if (!state || !state_begin(state, site->probe, ROLE_BEFORE, &event))
        return NULL;
    lua_pushinteger(state->L, (lua_Integer)site->pc);
    return state;
}

static void on_insn(MuninnThread *thread, void *data, uint64_t unused)
{
    Site *site = data;
    State *state = begin(thread, site);
    (void)unused;
    if (!state)
        return;
    lua_pushstring(state->L, site->text);
    state_call(state, site->probe, 2, 0);
    state_end(state);
}

static void on_branch(MuninnThread *thread, void *data, uint64_t taken)
{
    Site *site = data;
    State *state = begin(thread, site);
    if (!state)
        return;
    lua_pushboolean(state->L, taken != 0);
    lua_pushinteger(state->L, (lua_Integer)site->target);
    state_call(state, site->probe, 3, 0);
    state_end(state);
}

static void on_access(MuninnThread *thread, void *data, uint64_t address)
{
    Site *site = data;
    State *state = begin(thread, site);
    if (!state)
        return;
    lua_pushinteger(state->L, (lua_Integer)address);
    lua_pushinteger(state->L, site->size);
    lua_pushboolean(state->L, site->writes);
    state_call(state, site->probe, 4, 0);
    state_end(state);
}

// ---------------------------------------------------------------------------- blocks

static void add_accesses(Probe *probe, MuninnInsn *insn)
{
    MuninnAccess accesses[MUNINN_ACCESSES_MAX];
    size_t count = muninn_insn_accesses(insn, accesses, MUNINN_ACCESSES_MAX);

    for (size_t i = 0; i < count && i < MUNINN_ACCESSES_MAX; i++) {
        const MuninnAccess *access = &accesses[i];
        if (!access->has_address || !((access->reads && probe->reads) ||
                                      (access->writes && probe->writes)))
            continue;
        Site *site = site_of(probe, insn, (uint32_t)i);
        if (!site)
            continue;
        site->size = access->size;
        site->writes = access->writes;
        muninn_call_access(insn, i, on_access, site, call_flags);
    }
}

static void add_probe(Probe *probe, MuninnInsn *insn)
{
    Site *site = NULL;
    switch (probe->kind) {
    case PROBE_COUNT_INSN:
        muninn_count(insn, counter_of(probe, label_of(probe, insn)), 1);
        break;
    case PROBE_INSN:
        if (matches(probe->pattern, muninn_insn_mnemonic(insn)))
            site = site_of(probe, insn, 0);
        if (site)
            muninn_call(insn, on_insn, site, call_flags);
        break;
    case PROBE_BRANCH:
        if (muninn_insn_class(insn) == MUNINN_CLASS_BRANCH)
            site = site_of(probe, insn, 0);
        if (site)
            muninn_call_branch(insn, on_branch, site, call_flags);
        break;
    case PROBE_ACCESS:
        add_accesses(probe, insn);
        break;
    default:
        break;
    }
}

static bool is_in_object(const Probe *probe, const MuninnBlock *block)
{
    MuninnModule module;
    if (!probe->object)
        return true;
    if (!muninn_module_at(muninn_block_address(block), &module))
        return false;
    const char *slash = strrchr(module.path, '/');
    return matches(probe->object, slash ? slash + 1 : module.path);
}

static void on_block(MuninnBlock *block, void *data)
{
    (void)data;
    for (uint32_t i = 0; i < probe_count; i++) {
        Probe *probe = probes[i];
        if (probe->kind < PROBE_INSN || probe->kind > PROBE_COUNT_INSN ||
            __atomic_load_n(&probe->is_off, __ATOMIC_RELAXED) || !is_in_object(probe, block))
            continue;
        for (size_t insn = 0; insn < muninn_block_count(block); insn++)
            add_probe(probe, muninn_block_insn(block, insn));
    }
}

void insns_ask(void)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < probe_count; i++)
        is_wanted |= probes[i]->kind >= PROBE_INSN && probes[i]->kind <= PROBE_COUNT_INSN;
    if (!is_wanted)
        return;
    call_flags = scripts_mention("reg") ? MUNINN_CALL_READS_REGISTERS : 0;
    muninn_on_block(on_block, NULL);
}
