// SPDX-License-Identifier: MIT
//
// taint: where a program decides by what it has read, and where it writes it out. What read()
// brings from a descriptor is tainted; what is computed from tainted data is, too. Shows a shadow
// of registers and memory in the tool's own memory, which calls at every instruction keep.
//
// A register is tainted as a whole, memory by bytes. Data that is found by a tainted address is
// tainted. x87 registers, mask registers and what a signal handler leaves are not followed.
#define _GNU_SOURCE // memrchr
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

MUNINN_TOOL("taint", "follows what the program reads to branches and writes")

enum { VECTORS = 32, ACCESSES = 2, CHUNK_SHIFT = 23, CHUNKS = 1 << 24, PLACES_MAX = 4096 };

typedef struct State { // of a thread
    uint8_t general[MUNINN_GENERAL_REGISTERS + 1]; // 1: tainted; the flags are the last one
    uint8_t vector[VECTORS];
    MuninnAddress address[ACCESSES];
} State;

typedef struct Insn {
    MuninnAddress pc;
    uint32_t reads, writes, vector_reads, vector_writes;
    MuninnAccess accesses[ACCESSES];
    uint32_t access_count;
    MuninnClass class;
    bool clears; // the result is 0 whatever the operands are
} Insn;

// What is told at the end.
typedef enum Sink { SINK_BRANCH, SINK_TARGET, SINK_WRITE } Sink;
typedef struct Place {
    MuninnAddress pc;
    Sink sink;
    uint64_t times;
} Place;

static uint8_t **chunks; // a byte for each byte of memory, 8 MiB at a time; NULL: all clean
static Place places[PLACES_MAX];
static uint64_t source = 0;

// --------------------------------------------------------------------------- memory

static bool is_tainted(MuninnAddress address, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        uint8_t *chunk = chunks[(address + i) >> CHUNK_SHIFT & (CHUNKS - 1)];
        if (chunk && chunk[(address + i) & ((1u << CHUNK_SHIFT) - 1)])
            return true;
    }
    return false;
}

static uint8_t *chunk_at(MuninnAddress address, bool makes_it)
{
    uint8_t **slot = &chunks[address >> CHUNK_SHIFT & (CHUNKS - 1)], *none = NULL;
    if (!*slot && makes_it) {
        uint8_t *chunk = calloc(1, 1u << CHUNK_SHIFT); // touched where it is used only
        if (!__atomic_compare_exchange_n(slot, &none, chunk, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            free(chunk);
    }
    return *slot;
}

static void set(MuninnAddress address, uint64_t size, bool tainted)
{
    while (size) {
        uint64_t at = address & ((1u << CHUNK_SHIFT) - 1), n = (1u << CHUNK_SHIFT) - at;
        uint8_t *chunk = chunk_at(address, tainted);
        n = n < size ? n : size;
        if (chunk)
            memset(chunk + at, tainted, n);
        address += n;
        size -= n;
    }
}

// --------------------------------------------------------------------- instructions

static void tell(MuninnAddress pc, Sink sink)
{
    for (size_t i = 0; i < PLACES_MAX; i++) {
        MuninnAddress none = 0;
        if (__atomic_load_n(&places[i].pc, __ATOMIC_ACQUIRE) == 0 &&
            __atomic_compare_exchange_n(&places[i].pc, &none, pc, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            places[i].sink = sink;
        if (places[i].pc == pc) {
            __atomic_fetch_add(&places[i].times, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

static bool any_register(const uint8_t *shadow, uint32_t registers)
{
    for (; registers; registers &= registers - 1) {
        if (shadow[__builtin_ctz(registers)])
            return true;
    }
    return false;
}

static void set_registers(uint8_t *shadow, uint32_t registers, bool tainted)
{
    for (; registers; registers &= registers - 1)
        shadow[__builtin_ctz(registers)] = tainted;
}

// How many bytes access `i` is of: those of all repetitions.
static uint64_t bytes_of(MuninnThread *thread, const Insn *insn, uint32_t i)
{
    uint64_t size = insn->accesses[i].size;
    return insn->accesses[i].is_repeated ? size * muninn_register(thread, MUNINN_RCX) : size;
}

static void on_insn(MuninnThread *thread, void *data, uint64_t value)
{
    State *s = muninn_thread_data(thread);
    const Insn *insn = data;
    bool tainted = any_register(s->general, insn->reads) ||
                   any_register(s->vector, insn->vector_reads);
    if (tainted && insn->class == MUNINN_CLASS_BRANCH)
        tell(insn->pc, SINK_BRANCH);
    for (uint32_t i = 0; i < insn->access_count; i++)
        tainted |= insn->accesses[i].reads && is_tainted(s->address[i], bytes_of(thread, insn, i));
    bool is_indirect = insn->class == MUNINN_CLASS_JUMP_INDIRECT ||
                       insn->class == MUNINN_CLASS_CALL_INDIRECT ||
                       insn->class == MUNINN_CLASS_RETURN;
    if (tainted && is_indirect)
        tell(insn->pc, SINK_TARGET);
    tainted &= insn->class == MUNINN_CLASS_OTHER && !insn->clears;
    for (uint32_t i = 0; i < insn->access_count; i++) {
        if (insn->accesses[i].writes)
            set(s->address[i], bytes_of(thread, insn, i), tainted);
    }
    set_registers(s->general, insn->writes, tainted);
    set_registers(s->vector, insn->vector_writes, tainted);
}

static void on_address_0(MuninnThread *thread, void *data, uint64_t address)
{
    ((State *)muninn_thread_data(thread))->address[0] = address;
}

static void on_address_1(MuninnThread *thread, void *data, uint64_t address)
{
    ((State *)muninn_thread_data(thread))->address[1] = address;
}

// ------------------------------------------------- what the text of an instruction says

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

// "al", "bx", "sil", "r9b": the rest of the register stays as it is.
static bool is_part(const char *operand)
{
    size_t n = strcspn(operand, ",");
    char last = operand[n - 1];
    return (n == 2 && strchr("abcds", operand[0]) && strchr("lhxpi", last)) ||
           (n == 3 && operand[0] != 'e' && operand[0] != 'r' && last == 'l') ||
           (operand[0] == 'r' && n > 2 && strchr("bw", last));
}

// Bit n: the text names vector register n.
static uint32_t vectors_in(const char *text, const char *end)
{
    uint32_t found = 0;
    for (; (text = strstr(text, "mm")) && (!end || text < end); text += 2) {
        if (strchr("xyz", text[-1]) && text[2] >= '0' && text[2] <= '9')
            found |= 1u << (atoi(text + 2) % VECTORS);
    }
    return found;
}

static void study_vectors(Insn *kept, const char *name, const char *operands)
{
    const char *comma = strchr(operands, ',');
    bool compares = strstr(name, "comi") || strstr(name, "test");
    uint32_t first = vectors_in(operands, comma ? comma : operands + strlen(operands));
    uint32_t others = comma ? vectors_in(comma, NULL) : 0;
    // Of two operands the first is read too, unless it is only moved to; of three it is not.
    bool reads_first = compares || (name[0] != 'v' && !strstr(name, "mov")) ||
                       begins(name, "movh") || begins(name, "movl") || begins(name, "vfm");
    bool is_store = operands[0] != 'x' && operands[0] != 'y' && operands[0] != 'z';
    kept->vector_reads = others | (reads_first || is_store ? first : 0);
    kept->vector_writes = compares || is_store ? 0 : first;
}

// xor eax, eax; pxor xmm1, xmm1; vpxor xmm0, xmm1, xmm1.
static bool gives_zero(const char *name, const char *operands)
{
    const char *last = strrchr(operands, ','), *before;
    if (!last || !(strstr(name, "xor") || strcmp(name, "sub") == 0 || strstr(name, "psub")))
        return false;
    before = memrchr(operands, ',', (size_t)(last - operands));
    before = before ? before + 2 : operands;
    size_t length = (size_t)(last - before);
    return strlen(last + 2) == length && memcmp(before, last + 2, length) == 0;
}

static void study(MuninnInsn *insn, Insn *kept)
{
    char text[128];
    const char *name = muninn_insn_mnemonic(insn), *operands;
    muninn_insn_text(insn, text, sizeof(text));
    operands = strrchr(text, ' ') ? strstr(text, name) : NULL;
    operands = operands && strchr(operands, ' ') ? strchr(operands, ' ') + 1 : "";
    *kept = (Insn){
        .pc = muninn_insn_address(insn),
        .reads = muninn_insn_reads(insn),
        .writes = muninn_insn_writes(insn) & ~(1u << MUNINN_RSP),
        .class = muninn_insn_class(insn),
        .clears = gives_zero(name, operands),
    };
    kept->access_count = (uint32_t)muninn_insn_accesses(insn, kept->accesses, ACCESSES);
    if (kept->access_count > ACCESSES)
        kept->access_count = ACCESSES;
    for (uint32_t i = 0; i < kept->access_count; i++) {
        if (!kept->accesses[i].has_address)
            kept->accesses[i].size = 0;
    }
    if (*operands && is_part(operands))
        kept->reads |= kept->writes & ~(1u << MUNINN_FLAGS);
    study_vectors(kept, name, operands);
    // String instructions step their pointers and count: these are no results.
    if (!kept->vector_writes && (begins(name, "movs") || begins(name, "stos") ||
                                 begins(name, "lods") || begins(name, "scas") ||
                                 begins(name, "cmps")) && strlen(name) == 5)
        kept->writes &= 1u << MUNINN_FLAGS | 1u << MUNINN_RAX;
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        Insn *kept = malloc(sizeof(*kept)); // blocks that are made again leave it behind
        study(insn, kept);
        if (kept->access_count > 0)
            muninn_call_access(insn, 0, on_address_0, NULL, 0);
        if (kept->access_count > 1)
            muninn_call_access(insn, 1, on_address_1, NULL, 0);
        muninn_call(insn, on_insn, kept, MUNINN_CALL_READS_REGISTERS);
    }
}

// --------------------------------------------------------------------------- events

static void on_thread_start(MuninnThread *thread, void *data)
{
    muninn_set_thread_data(thread, calloc(1, sizeof(State)));
}

static void on_syscall_before(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    if (call->number == SYS_write && is_tainted(call->args[1], call->args[2]))
        tell(muninn_pc(thread), SINK_WRITE);
}

static void on_syscall_after(MuninnThread *thread, const MuninnSyscall *call, void *data)
{
    if ((call->number == SYS_read || call->number == SYS_pread64) && call->result > 0)
        set(call->args[1], (uint64_t)call->result, call->args[0] == source);
}

static void on_unmap(MuninnAddress start, MuninnAddress end, void *data)
{
    set(start, end - start, false);
}

static void on_end(void *data)
{
    static const char *const words[] = {
        [SINK_BRANCH] = "a branch depends on it",
        [SINK_TARGET] = "a jump goes where it says",
        [SINK_WRITE] = "it is written",
    };
    char name[256];
    for (size_t i = 0; i < PLACES_MAX && places[i].pc; i++)
        muninn_log("%s, %lu times: %s", words[places[i].sink], places[i].times,
                   muninn_name(NULL, places[i].pc, name, sizeof(name)));
    if (!places[0].pc)
        muninn_log("nothing depends on what was read");
}

int muninn_tool_start(void)
{
    muninn_option_number("fd", &source, "What is read from this descriptor is tainted.");
    chunks = calloc(CHUNKS, sizeof(*chunks)); // touched where it is used only
    if (!chunks)
        return 1;
    muninn_need(MUNINN_NEED_NAMES);
    muninn_on_block(on_block, NULL);
    muninn_on_thread_start(on_thread_start, NULL);
    muninn_on_syscall_before(on_syscall_before, NULL);
    muninn_on_syscall_after(on_syscall_after, NULL);
    muninn_on_unmap(on_unmap, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
