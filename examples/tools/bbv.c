// SPDX-License-Identifier: MIT
//
// bbv: basic block vectors for SimPoint. The run is cut into intervals of so many instructions;
// for each, a line tells how many instructions of which blocks were executed in it:
//     T:1:120 :7:3000 :12:9
// Shows counters of a thread, and a call that a block makes only if a word has reached a limit.
#include <muninn/tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MUNINN_TOOL("bbv", "writes basic block vectors for SimPoint")

enum { SLOTS = 2 * MUNINN_COUNTERS_MAX };

// A part: a run of instructions that can be left at its end alone, as far as the code says.
typedef struct Part {
    MuninnAddress address;
    uint32_t instructions;
} Part;
static Part parts[MUNINN_COUNTERS_MAX]; // by counter
static uint32_t slots[SLOTS];           // hash table: 1 + the counter
static uint32_t used;
static uint32_t left_out; // parts for which no counter was left

typedef struct State {
    FILE *out;
    uint64_t *before; // each counter when the interval began
} State;

static uint64_t interval = 100000000;
static const char *bb_path = "bb.out.%p", *pc_path = "pc.out.%p";
static MuninnWord instructions; // of the thread, since the interval began

static State *state_of(MuninnThread *thread)
{
    State *s = muninn_thread_data(thread);
    if (!s) {
        char path[4096];
        uint32_t number = muninn_thread_number(thread);
        s = calloc(1, sizeof(*s));
        s->before = calloc(MUNINN_COUNTERS_MAX, sizeof(*s->before));
        snprintf(path, sizeof(path), number == 1 ? "%s" : "%s.%u", bb_path, number);
        s->out = fdopen(muninn_open(path), "w");
        muninn_set_thread_data(thread, s);
    }
    return s;
}

static void write_interval(MuninnThread *thread)
{
    State *s = state_of(thread);
    uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    bool any = false;
    for (uint32_t i = 0; i < count && s->out; i++) {
        uint64_t now = muninn_counter_of(thread, i);
        if (now != s->before[i])
            fprintf(s->out, any ? " :%u:%lu" : "T:%u:%lu", i + 1, now - s->before[i]);
        any |= now != s->before[i];
        s->before[i] = now;
    }
    if (any)
        fputs(" \n", s->out);
    if (s->out)
        fflush(s->out);
    *muninn_word_of(thread, instructions) = 0;
}

static void on_full(MuninnThread *thread, void *data, uint64_t value)
{
    write_interval(thread);
}

static bool counter_of_part(MuninnAddress address, uint32_t count, MuninnCounter *counter)
{
    size_t at = ((address * 31 + count) * 0x9e3779b97f4a7c15ull) >> 47;
    while (slots[at] && (parts[slots[at] - 1].address != address ||
                         parts[slots[at] - 1].instructions != count))
        at = (at + 1) % SLOTS;
    if (!slots[at] && used == MUNINN_COUNTERS_MAX)
        return false;
    if (!slots[at]) {
        MuninnCounter new_one = muninn_counter();
        parts[new_one] = (Part){address, count};
        slots[at] = new_one + 1;
        __atomic_store_n(&used, new_one + 1, __ATOMIC_RELEASE);
    }
    *counter = slots[at] - 1;
    return true;
}

// The parts of a block end behind its conditional branches.
static void on_block(MuninnBlock *block, void *data)
{
    size_t count = muninn_block_count(block), end;
    for (size_t first = 0; first < count; first = end) {
        MuninnInsn *begin = muninn_block_insn(block, first);
        MuninnCounter counter;
        for (end = first + 1; end < count; end++) {
            if (muninn_insn_class(muninn_block_insn(block, end - 1)) != MUNINN_CLASS_OTHER)
                break;
        }
        muninn_call_if(begin, instructions, MUNINN_NOT_BELOW, (int32_t)interval, on_full, NULL, 0);
        muninn_update(begin, instructions, MUNINN_ADD, MUNINN_CONSTANT, (int64_t)(end - first));
        if (!counter_of_part(muninn_insn_address(begin), (uint32_t)(end - first), &counter)) {
            left_out++;
            continue;
        }
        for (size_t i = first; i < end; i++)
            muninn_count(muninn_block_insn(block, i), counter, 1);
    }
}

static void close_thread(MuninnThread *thread, void *data)
{
    State *s = state_of(thread);
    write_interval(thread);
    if (s->out)
        fclose(s->out);
    free(s->before);
    free(s);
    muninn_set_thread_data(thread, NULL);
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    muninn_set_thread_data(thread, NULL); // the files are the parent's
    muninn_counters_reset();
    *muninn_word_of(thread, instructions) = 0;
}

static void on_end(void *data)
{
    muninn_each_thread(close_thread, NULL);
    int fd = muninn_open(pc_path);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    for (uint32_t i = 0; i < used && out; i++) {
        char name[256];
        fprintf(out, "F:%u:%lx:%s\n", i + 1, parts[i].address,
                muninn_name(NULL, parts[i].address, name, sizeof(name)));
    }
    if (out)
        fclose(out);
    if (left_out)
        muninn_log("%u blocks were not counted: there are %d counters", left_out,
                   MUNINN_COUNTERS_MAX);
}

int muninn_tool_start(void)
{
    muninn_option_number("interval-size", &interval, "Instructions of an interval.");
    muninn_option_text("bb-out-file", &bb_path, "The vectors; further threads: FILE.NUMBER.");
    muninn_option_text("pc-out-file", &pc_path, "Where each block is.");
    if (interval == 0 || interval > INT32_MAX) {
        muninn_log("--interval-size=%lu: 1 to %d", interval, INT32_MAX);
        return 1;
    }
    muninn_need(MUNINN_NEED_NAMES);
    instructions = muninn_word();
    muninn_on_block(on_block, NULL);
    muninn_on_thread_end(close_thread, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
