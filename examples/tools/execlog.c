// SPDX-License-Identifier: MIT
//
// execlog: every instruction that is executed, with what it accesses and the registers that it
// changes. Shows calls before and after instructions, and reading registers. It is meant for small
// programs, or for the part of one that --from and --to name.
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MUNINN_TOOL("execlog", "writes every executed instruction to a file")

typedef struct Insn {
    MuninnAddress address;
    uint32_t written; // bits of general registers
    char text[64];
} Insn;

static const char *path = "execlog.%p";
static uint64_t from = 0, to = UINT64_MAX;
static bool shows_registers = false;
static FILE *out;

static const char *const names[MUNINN_GENERAL_REGISTERS] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

// Each line is one call of stdio, which has a lock: lines of several threads do not mix.
static void on_insn(MuninnThread *thread, void *data, uint64_t value)
{
    const Insn *insn = data;
    fprintf(out, "%u %#lx %s\n", muninn_thread_number(thread), insn->address, insn->text);
}

static void on_load(MuninnThread *thread, void *data, uint64_t address)
{
    fprintf(out, "%u   load %#lx\n", muninn_thread_number(thread), address);
}

static void on_store(MuninnThread *thread, void *data, uint64_t address)
{
    fprintf(out, "%u   store %#lx\n", muninn_thread_number(thread), address);
}

static void on_done(MuninnThread *thread, void *data, uint64_t value)
{
    const Insn *insn = data;
    char line[512];
    size_t n = 0;
    for (unsigned r = 0; r < MUNINN_GENERAL_REGISTERS; r++) {
        if (insn->written >> r & 1)
            n += (size_t)snprintf(line + n, sizeof(line) - n, " %s=%#lx", names[r],
                                  muninn_register(thread, r));
    }
    fprintf(out, "%u  %s\n", muninn_thread_number(thread), line);
}

static void watch(MuninnInsn *insn)
{
    MuninnAccess accesses[MUNINN_ACCESSES_MAX];
    Insn *kept = malloc(sizeof(*kept)); // blocks that are made again leave it behind
    kept->address = muninn_insn_address(insn);
    kept->written = muninn_insn_writes(insn) & ((1u << MUNINN_GENERAL_REGISTERS) - 1);
    muninn_insn_text(insn, kept->text, sizeof(kept->text));
    muninn_call(insn, on_insn, kept, 0);
    size_t count = muninn_insn_accesses(insn, accesses, MUNINN_ACCESSES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (accesses[i].reads)
            muninn_call_access(insn, i, on_load, NULL, 0);
        if (accesses[i].writes)
            muninn_call_access(insn, i, on_store, NULL, 0);
    }
    if (shows_registers && kept->written && muninn_insn_class(insn) == MUNINN_CLASS_OTHER)
        muninn_call(insn, on_done, kept, MUNINN_CALL_AFTER | MUNINN_CALL_READS_REGISTERS);
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        if (muninn_insn_address(insn) >= from && muninn_insn_address(insn) < to)
            watch(insn);
    }
}

static void open_out(MuninnThread *thread, void *data)
{
    int fd = muninn_open(path);
    out = fd < 0 ? NULL : fdopen(fd, "w");
}

static void on_end(void *data)
{
    fflush(out);
}

// The child's copy of the file has lines that the parent is going to write.
static void on_fork_child(MuninnThread *thread, void *data)
{
    open_out(thread, data);
    if (!out)
        abort();
}

int muninn_tool_start(void)
{
    muninn_option_text("out", &path, "The file; %p in its name becomes the process id.");
    muninn_option_number("from", &from, "The first address of code that is watched.");
    muninn_option_number("to", &to, "Where that ends.");
    muninn_option_bool("registers", &shows_registers, "Show registers that were written.");
    open_out(NULL, NULL);
    if (!out) {
        muninn_log("cannot write %s", path);
        return 1;
    }
    muninn_on_block(on_block, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
