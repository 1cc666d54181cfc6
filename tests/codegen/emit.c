// SPDX-License-Identifier: MIT
//
// Translates guest code without running it and prints what was emitted.
//
// Reads lines `name address how bytes` and writes a listing for each. `how` is
// a comma-separated list:
//   plain     nothing special
//   indirect  with the entry prefix of indirect branches
//   jrcxz     that prefix as it is where `loop` is slow
//   busy      the page is rewritten too often to be guarded: blocks check themselves
//   count     under the `count` tool
//   access    under a tool that calls a function for each memory access
//   next      a second block, which the first links to, stands behind the bytes
// With the argument `bytes` it prints the bytes of the code instead, and with `masked` these with
// zeroes where an address of the engine or of the cache is noted (emit/emit.h).
//
// Each case has a process of its own, so that neither its addresses nor a bug
// that kills it touches the others.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/gateway/gateway.h"
#include "engine/run/run.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/listing.h"
#include "engine/translate/entries_x64.h"
#include "engine/translate/translate.h"

enum { GUARD_FAULTS_UNTIL_BUSY = 64, CODE_BYTES_MAX = 512 };
enum { NO_OPCODE = 0x06 }; // push es of 32-bit mode: where a case ends, so does its block

typedef struct Case {
    char name[64];
    GuestAddr pc;
    char how[64];
    u8 bytes[CODE_BYTES_MAX];
    size_t size;
} Case;

static void put_line(const char *line)
{
    puts(line);
}

// ------------------------------------------------------- a tool that calls out

static void on_access(ToolThread *thread, u64 arg, GuestAddr address)
{
    (void)thread;
    (void)arg;
    (void)address;
}

static void call_for_accesses(ToolBlock *block, const ToolInsn *insn)
{
    ToolAccess access[8];
    unsigned n = tool_accesses(insn, access, ARRAY_LEN(access));
    for (unsigned i = 0; i < n; i++)
        tool_call_access(block, &access[i], on_access, insn->pc);
}

static const Tool access_tool = {
    .name = "access",
    .summary = "calls a function for each memory access",
    .insn = call_for_accesses,
};

// -------------------------------------------------------------------- one case

static bool is_so(const Case *c, const char *word)
{
    char how[sizeof(c->how)];
    memcpy(how, c->how, sizeof(how));
    for (char *w = strtok(how, ","); w; w = strtok(NULL, ",")) {
        if (strcmp(w, word) == 0)
            return true;
    }
    return false;
}

static void place_code(const Case *c)
{
    u64 start = PAGE_DOWN(c->pc), end = PAGE_UP(c->pc + c->size);
    i64 at = sys_mmap(start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (u64)-1, 0);
    ASSERT(at == (i64)start);
    memset((void *)start, NO_OPCODE, end - start);
    memcpy((void *)c->pc, c->bytes, c->size);
}

static void make_busy(const Case *c)
{
    bool busy = false;
    for (unsigned i = 0; !busy && i < GUARD_FAULTS_UNTIL_BUSY; i++) {
        aspace_guard_code(c->pc, c->pc + c->size);
        ASSERT(aspace_unguard_code(c->pc, &busy));
    }
    ASSERT(busy && aspace_code_is_busy(c->pc));
}

static void list_guest(const Case *c)
{
    for (size_t at = 0; at < c->size;) {
        unsigned len = listing_guest(c->pc + at, c->bytes + at, c->size - at, put_line);
        if (!len)
            return;
        at += len;
    }
}

static enum { LISTING, BYTES, MASKED } output;

static void mask_addresses(const Block *block, u8 *bytes)
{
    const CodePtr code = code_at(block->code);
    for (unsigned i = 0; i < translate_addresses->count; i++) {
        const EmitAddress *address = &translate_addresses->items[i];
        ASSERT(address->at >= code && address->at < code + block->code_size);
        memset(bytes + (address->at - code), 0, address->form == EMIT_WORD64 ? 8 : 4);
        if (address->form == EMIT_TWO_STORES)
            memset(bytes + (address->upper - code), 0, 4);
    }
}

static void print_bytes(const Block *block)
{
    u8 bytes[UINT16_MAX];
    memcpy(bytes, code_at(block->code), block->code_size);
    ASSERT(translate_addresses->count < EMIT_ADDRESSES_MAX);
    if (output == MASKED)
        mask_addresses(block, bytes);
    for (u32 i = 0; i < block->code_size; i++)
        printf("%02x", bytes[i]);
    puts("");
}

static void list_emitted(const Case *c)
{
    static const char *const why[] = {
        [FETCH_NO_ACCESS] = "no access",
        [FETCH_BAD_CODE] = "bad code",
        [FETCH_TOO_LONG] = "too long",
    };
    FetchResult result;
    GuestAddr fault;
    lock_acquire(&engine_lock);
    if (is_so(c, "busy"))
        make_busy(c);
    static EmitAddresses addresses;
    if (is_so(c, "next"))
        ASSERT(translate_block(c->pc + c->size - 1, 0, ENTRY_NONE, &result, &fault));
    translate_addresses = &addresses;
    Block *block = translate_block(c->pc, 0, is_so(c, "indirect") ? ENTRY_LOOKUP : ENTRY_NONE,
                                   &result, &fault);
    if (block && output != LISTING) {
        print_bytes(block);
    } else if (block) {
        printf("  ---- %u instructions, %u exits\n", block->insn_count, block->exit_count);
        listing_block(block, put_line);
    } else {
        printf("  ---- no block: %s at 0x%lx\n", why[result], fault);
    }
    lock_release(&engine_lock);
}

static void run_case(const Case *c)
{
    printf("%s:%s%s\n", c->name, is_so(c, "plain") ? "" : " ", is_so(c, "plain") ? "" : c->how);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (is_so(c, "count"))
            ASSERT(tool_select(&(Options){.tool = "count"}));
        if (is_so(c, "access"))
            tool = &access_tool;
        place_code(c);
        if (output == LISTING)
            list_guest(c);
        list_emitted(c);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status)
        printf("  died with status %d\n", status);
    puts("");
}

static bool read_case(Case *c)
{
    char hex[2 * CODE_BYTES_MAX + 1];
    if (scanf("%63s %lx %63s %1024s", c->name, &c->pc, c->how, hex) != 4)
        return false;
    c->size = strlen(hex) / 2;
    for (size_t i = 0; i < c->size; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};
        c->bytes[i] = (u8)strtoul(digits, NULL, 16);
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        output = strcmp(argv[1], "masked") == 0 ? MASKED : BYTES;
    gateway_init(run_light);
    aspace_init();
    cache_init(8 * MiB, translate_code_room(), true);
    translate_init(0, false);
    Case c;
    while (read_case(&c)) {
        entries_by_loop = !is_so(&c, "jrcxz");
        run_case(&c);
    }
    return 0;
}
