// SPDX-License-Identifier: MIT
//
// An allocator in a program (jemalloc, tcmalloc, mimalloc) is replaced like the C library's. That
// is right only if all of its entries are replaced: memory that comes through one that is not known
// here, and is given back through one that is, was never allocated as far as the tool can tell,
// and the other way round the allocator finds a block that it did not make, and dies.
//
// Nothing in a file tells which functions allocate. But one design has other entries as a rule:
// malloc, free and the operators of C++ are stubs that jump through a table of functions, so that
// hooks can be put in front, and the program has more stubs, without a name, for allocations that
// may fail. Chromium and all that is made from it (PartitionAlloc's shim) are of this kind. Such an
// allocator is left alone.
#include "engine/redirect/own_allocator.h"

#include <signal.h>
#include <string.h>

#include "engine/ctx/ctx.h"
#include "engine/decode/decode.h"
#include "engine/log/log.h"
#include "engine/toolapi/toolapi.h"

enum { STUB_INSNS = 14, STUB_JUMPS = 2 };

// Registers of the stub that hold the table's address, and the function that was read from it.
typedef struct Stub {
    u8 table, function;
} Stub;

static bool is_plain_load(const InsnAccess *access)
{
    return access->reads && !access->writes && access->size_bytes == 8 && access->address.is_one &&
           !access->address.segment && access->address.index == INSN_NO_REG;
}

// The first function of a table allocates; what is at its start is a variable of one function, as
// in wrappers that have looked up the next `free`.
static bool is_from_table(const Stub *stub, const InsnAccess *access)
{
    return stub->table != INSN_NO_REG && is_plain_load(access) &&
           access->address.base == stub->table && access->address.disp > 0;
}

static bool goes_through_table(const Stub *stub, const Insn *insn)
{
    InsnAccess accesses[4];
    unsigned count = insn_accesses(insn, accesses, ARRAY_LEN(accesses));
    for (unsigned i = 0; i < count; i++) {
        if (!accesses[i].address.is_hidden)
            return is_from_table(stub, &accesses[i]);
    }
    return stub->function != INSN_NO_REG && insn_gprs_used(insn) >> stub->function & 1;
}

// A copied instruction: what it leaves in the stub's registers.
static void follow(Stub *stub, const Insn *insn)
{
    InsnForm room;
    InsnAccess access;
    const InsnForm *form = insn_form(insn, &room);
    bool loads = insn->mnemonic == ZYDIS_MNEMONIC_MOV && form->dst != INSN_NO_REG &&
                 insn_accesses(insn, &access, 1) == 1 && is_plain_load(&access);
    bool of_table = loads && is_from_table(stub, &access);
    bool of_variable = loads && (access.address.is_rip || access.address.base == INSN_NO_REG);
    if (stub->table != INSN_NO_REG && form->gprs_written >> stub->table & 1)
        stub->table = INSN_NO_REG;
    if (stub->function != INSN_NO_REG && form->gprs_written >> stub->function & 1)
        stub->function = INSN_NO_REG;
    if (of_table)
        stub->function = form->dst;
    else if (of_variable)
        stub->table = form->dst;
}

static bool read_insn(GuestAddr pc, Insn *ret_insn)
{
    static u8 bytes[DECODE_BYTES_MAX]; // ret_insn keeps it; engine lock
    return guest_read(pc, bytes, sizeof(bytes)) &&
           decode_insn(pc, bytes, sizeof(bytes), ret_insn) == DECODE_OK;
}

// The first instruction that does something.
static bool read_first_insn(GuestAddr function, Insn *ret_insn)
{
    return read_insn(function, ret_insn) &&
           (ret_insn->mnemonic != ZYDIS_MNEMONIC_ENDBR64 ||
            read_insn(function + ret_insn->len, ret_insn));
}

GuestAddr own_allocator_jump_target(GuestAddr function)
{
    Insn insn;
    if (!read_first_insn(function, &insn) || insn.lowering != LOWER_JMP)
        return 0;
    GuestAddr target = insn.target;
    bool goes_on = !read_first_insn(target, &insn) || insn.lowering == LOWER_JMP ||
                   insn.lowering == LOWER_JMP_INDIRECT; // as the procedure linkage table does
    return goes_on ? 0 : target;
}

bool own_allocator_has_table(GuestAddr free)
{
    Stub stub = {INSN_NO_REG, INSN_NO_REG};
    GuestAddr pc = free;
    unsigned jumps = 0;
    for (unsigned i = 0; i < STUB_INSNS; i++) {
        Insn insn;
        if (!read_insn(pc, &insn))
            return false;
        if (insn.lowering == LOWER_JMP_INDIRECT || insn.lowering == LOWER_CALL_INDIRECT)
            return goes_through_table(&stub, &insn);
        if (insn.lowering != LOWER_COPY && (insn.lowering != LOWER_JMP || jumps++ == STUB_JUMPS))
            return false;
        if (insn.lowering == LOWER_COPY)
            follow(&stub, &insn);
        pc = insn.lowering == LOWER_JMP ? insn.target : pc + insn.len;
    }
    return false;
}

// ---------------------------------------------------------------- what the user is told

static GuestAddr replaced_start, replaced_end; // the code of the last object with an allocator
static char replaced_name[256];

void own_allocator_replaced(const Mapping *object)
{
    replaced_start = object->start;
    replaced_end = object->end;
    strncpy(replaced_name, object->name, sizeof(replaced_name) - 1);
}

static bool is_left_alone; // of some object

void own_allocator_left_alone(const Mapping *object)
{
    __atomic_store_n(&is_left_alone, true, __ATOMIC_RELAXED);
    log_note("the allocator of %s is left alone, and what it gives is not checked: it can be "
             "entered where no name tells; --soname-synonyms=somalloc=* replaces it", object->name);
}

bool tool_leaves_allocator(void)
{
    return __atomic_load_n(&is_left_alone, __ATOMIC_RELAXED);
}

void redirect_tell_death(const ThreadCtx *ctx, int signal)
{
    bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
                    signal == SIGTRAP || signal == SIGFPE;
    if (is_fault && ctx->pc >= replaced_start && ctx->pc < replaced_end)
        log_note("the allocator of %s has been replaced; if the program dies only here, run it "
                 "with --soname-synonyms=somalloc=nouserintercepts", replaced_name);
}
