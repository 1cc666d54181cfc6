// SPDX-License-Identifier: MIT
//
// What blocks insert, at one instruction: --what says what, --at where. Says what it has seen.
#include <muninn/tool.h>
#include <stdlib.h>
#include <string.h>

MUNINN_TOOL("probe", "probes what blocks insert")

static const char *what = "";
static uint64_t at;
static uint64_t calls, sum, last;
static MuninnCounter not_taken;
static MuninnWord words[8];

static void on_read(MuninnThread *thread, void *data, uint64_t value)
{
    last = muninn_register(thread, MUNINN_R12);
    sum = muninn_register(thread, MUNINN_FLAGS) & 1;
    calls++;
}

static void on_read_after(MuninnThread *thread, void *data, uint64_t value)
{
    last = muninn_register(thread, MUNINN_R15);
    calls++;
}

static void on_set(MuninnThread *thread, void *data, uint64_t value)
{
    muninn_set_register(thread, MUNINN_R14, 2);
    calls++;
}

static void on_clear_carry(MuninnThread *thread, void *data, uint64_t value)
{
    muninn_set_register(thread, MUNINN_FLAGS, muninn_register(thread, MUNINN_FLAGS) & ~1ull);
    calls++;
}

static void on_value(MuninnThread *thread, void *data, uint64_t value)
{
    calls++;
    sum += value;
    last = value;
}

// What the access has stored can be read.
static void on_stored(MuninnThread *thread, void *data, uint64_t address)
{
    uint64_t stored = 0;
    calls++;
    last = address;
    if (muninn_read(address, &stored, sizeof(stored)))
        sum += stored;
}

static void on_times(MuninnThread *thread, void *data, uint64_t value)
{
    ++*(uint64_t *)data;
}

__attribute__((target("general-regs-only")))
static void on_hot(MuninnThread *thread, void *data, uint64_t value)
{
    calls++;
}

static uint64_t times[4];

static void update_words(MuninnInsn *insn)
{
    muninn_update(insn, words[0], MUNINN_ADD, MUNINN_CONSTANT, 3);
    muninn_update(insn, words[1], MUNINN_ADD, MUNINN_REGISTER, MUNINN_RCX);
    muninn_update(insn, words[2], MUNINN_STORE, MUNINN_ADDRESS, 0);
    muninn_update(insn, words[3], MUNINN_MAX, MUNINN_ADDRESS, 0);
    muninn_update(insn, words[4], MUNINN_MIN, MUNINN_ADDRESS, 0);
    muninn_update(insn, words[5], MUNINN_MAX, MUNINN_REGISTER, MUNINN_RCX);
    muninn_update(insn, words[6], MUNINN_STORE, MUNINN_CONSTANT, -7);
    muninn_update(insn, words[7], MUNINN_MIN, MUNINN_CONSTANT, 11);
    if (muninn_update(insn, words[0], MUNINN_ADD, MUNINN_ADDRESS, 1))
        muninn_log("an access that is not there has an address");
}

static void call_if(MuninnInsn *insn)
{
    static const MuninnCondition conditions[4] = {
        MUNINN_EQUAL, MUNINN_NOT_EQUAL, MUNINN_BELOW, MUNINN_NOT_BELOW,
    };
    for (int i = 0; i < 4; i++)
        muninn_call_if(insn, words[0], conditions[i], 10, on_times, &times[i], 0);
    muninn_update(insn, words[0], MUNINN_ADD, MUNINN_CONSTANT, 1);
}

static void insert(MuninnInsn *insn)
{
    if (strcmp(what, "read") == 0)
        muninn_call(insn, on_read, NULL, MUNINN_CALL_READS_REGISTERS);
    else if (strcmp(what, "read-after") == 0)
        muninn_call(insn, on_read_after, NULL, MUNINN_CALL_READS_REGISTERS | MUNINN_CALL_AFTER);
    else if (strcmp(what, "set") == 0)
        muninn_call(insn, on_set, NULL, MUNINN_CALL_WRITES_REGISTERS);
    else if (strcmp(what, "clear-carry") == 0)
        muninn_call(insn, on_clear_carry, NULL,
                    MUNINN_CALL_READS_REGISTERS | MUNINN_CALL_WRITES_REGISTERS);
    else if (strcmp(what, "branch") == 0 && !muninn_call_branch(insn, on_value, NULL, 0))
        muninn_log("this is no branch");
    else if (strcmp(what, "target") == 0 && !muninn_call_target(insn, on_value, NULL, 0))
        muninn_log("this is no indirect jump");
    else if (strcmp(what, "not-taken") == 0 && !muninn_count_not_taken(insn, not_taken, 1))
        muninn_log("this is no branch");
    else if (strcmp(what, "access") == 0)
        muninn_call_access(insn, 0, on_value, NULL, 0);
    else if (strcmp(what, "access-after") == 0)
        muninn_call_access(insn, 0, on_stored, NULL, MUNINN_CALL_AFTER);
    else if (strcmp(what, "after-branch") == 0)
        muninn_call(insn, on_value, NULL, MUNINN_CALL_AFTER);
    else if (strcmp(what, "hot") == 0)
        muninn_call(insn, on_hot, NULL, MUNINN_CALL_HOT);
    else if (strcmp(what, "words") == 0)
        update_words(insn);
    else if (strcmp(what, "call-if") == 0)
        call_if(insn);
}

static void describe(MuninnInsn *insn)
{
    char text[64];
    MuninnAccess accesses[MUNINN_ACCESSES_MAX];
    size_t count = muninn_insn_accesses(insn, accesses, MUNINN_ACCESSES_MAX);
    muninn_log("%s, %s, %zu bytes from %02x, class %d, target %#lx, reads %#x, writes %#x",
               muninn_insn_text(insn, text, sizeof(text)), muninn_insn_mnemonic(insn),
               muninn_insn_size(insn), muninn_insn_bytes(insn)[0], muninn_insn_class(insn),
               muninn_insn_target(insn), muninn_insn_reads(insn), muninn_insn_writes(insn));
    for (size_t i = 0; i < count; i++)
        muninn_log("access of %u bytes:%s%s%s", accesses[i].size, accesses[i].reads ? " reads" : "",
                   accesses[i].writes ? " writes" : "", accesses[i].is_stack ? " stack" : "");
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        if (muninn_insn_address(insn) != at)
            continue;
        insert(insn);
        if (strcmp(what, "describe") == 0)
            describe(insn);
    }
}

static void on_thread_start(MuninnThread *thread, void *data)
{
    *muninn_word_of(thread, words[4]) = *muninn_word_of(thread, words[7]) = UINT64_MAX;
}

static void say_words(MuninnThread *thread, void *data)
{
    for (int i = 0; i < 8; i++)
        muninn_log("word %d is %#lx", i, *muninn_word_of(thread, words[i]));
}

static void on_end(void *data)
{
    muninn_log("calls %lu sum %lu last %#lx", calls, sum, last);
    if (strcmp(what, "not-taken") == 0)
        muninn_log("not taken %lu", muninn_counter_total(not_taken));
    if (strcmp(what, "words") == 0)
        muninn_each_thread(say_words, NULL);
    if (strcmp(what, "call-if") == 0)
        muninn_log("times %lu %lu %lu %lu", times[0], times[1], times[2], times[3]);
}

int muninn_tool_start(void)
{
    muninn_option_text("what", &what, "What to insert.");
    muninn_option_number("at", &at, "Where.");
    not_taken = muninn_counter();
    for (int i = 0; i < 8; i++)
        words[i] = muninn_word();
    muninn_on_block(on_block, NULL);
    muninn_on_thread_start(on_thread_start, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
