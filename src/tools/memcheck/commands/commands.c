// SPDX-License-Identifier: MIT
//
// Commands of the user's while the program runs, with the incumbent's words: here what is
// defined, in leaks.c searches for leaks. Words may be shortened, as there.
#include "tools/memcheck/commands/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

const char commands_help[] =
    "  leak_check [full*|summary] [kinds SET|reachable|possibleleak*|definiteleak]\n"
    "      [heuristics SET] [increased*|changed|any|new] [unlimited*|limited N]\n"
    "                       search for leaks, against the search before\n"
    "  block_list N[..M] [unlimited*|limited MAX] [heuristics SET]\n"
    "                       the blocks of loss records of the last search\n"
    "  who_points_at ADDRESS [SIZE]\n"
    "                       where a pointer to there is found\n"
    "  get_vbits ADDRESS [SIZE]  which bits are undefined\n"
    "  xb ADDRESS [SIZE]    the same beside the bytes\n"
    "  check_memory [addressable|defined] ADDRESS [SIZE]\n"
    "  make_memory [noaccess|undefined|defined|Definedifaddressable] ADDRESS [SIZE]\n"
    "  xtmemory             with --xtree-memory: writes the tree of what is allocated now\n";

enum { SIZE_SHOWN_MAX = 1 << 16 };

// ------------------------------------------------------------------ memory

// The V byte, and whether there is one.
static bool v_byte(ToolThread *thread, GuestAddr address, u8 *ret_v)
{
    if (!requests_is_mapped(address, 1) || shadow_first_noaccess(thread, address, 1) == address)
        return false;
    shadow_read(address, 1, ret_v);
    return true;
}

static void say_unaddressable(ToolThread *thread, GuestAddr start, u64 size, u64 count)
{
    if (count)
        relay_answer_format(thread, "Address 0x%llX len %llu has %llu bytes unaddressable\n",
                            (unsigned long long)start, (unsigned long long)size,
                            (unsigned long long)count);
}

static void do_get_vbits(ToolThread *thread, char *rest)
{
    enum { GROUP = 4, LINE = 32 };
    GuestAddr start;
    u64 size, bad = 0;
    char text[LINE * 3 + 2];
    if (!command_take_range(thread, &rest, &start, &size))
        return;
    for (u64 i = 0; i < size && i < SIZE_SHOWN_MAX; i += LINE) {
        size_t at = 0;
        for (u64 k = i; k < size && k < i + LINE; k++) {
            u8 v;
            if (k > i && (k - i) % GROUP == 0)
                text[at++] = ' ';
            if (v_byte(thread, start + k, &v)) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%02x", v);
            } else {
                bad++;
                at += (size_t)snprintf(text + at, sizeof(text) - at, "__");
            }
        }
        relay_answer_format(thread, "%s\n", text);
    }
    say_unaddressable(thread, start, size, bad);
}

static void do_xb(ToolThread *thread, char *rest)
{
    enum { LINE = 8 };
    GuestAddr start;
    u64 size, bad = 0;
    if (!command_take_range(thread, &rest, &start, &size))
        return;
    for (u64 i = 0; i < size && i < SIZE_SHOWN_MAX; i += LINE) {
        char bits[16 * LINE] = "", bytes[16 * LINE] = "";
        size_t b = 0, d = 0;
        for (u64 k = i; k < size && k < i + LINE; k++) {
            u8 v, byte;
            bool ok = v_byte(thread, start + k, &v) && guest_read(start + k, &byte, 1);
            bad += !ok;
            b += (size_t)(ok ? snprintf(bits + b, sizeof(bits) - b, "\t  %02x", v)
                             : snprintf(bits + b, sizeof(bits) - b, "\t  __"));
            d += (size_t)(ok ? snprintf(bytes + d, sizeof(bytes) - d, "\t0x%02x", byte)
                             : snprintf(bytes + d, sizeof(bytes) - d, "\t0x??"));
        }
        relay_answer_format(thread, "\t%s\n0x%llX:%s\n", bits, (unsigned long long)(start + i),
                            bytes);
    }
    say_unaddressable(thread, start, size, bad);
}

static void do_check_memory(ToolThread *thread, char *rest)
{
    static const char *const words[] = {"addressable", "defined", NULL};
    RelayPart parts[MEMCHECK_PARTS_MAX];
    char *word = command_next_word(&rest);
    int which = word ? command_find_word(word, words) : -1;
    GuestAddr start;
    u64 size;
    if (which < 0) {
        command_complain(thread, word, words);
        return;
    }
    if (!command_take_range(thread, &rest, &start, &size))
        return;
    RequestSearch found = requests_search(thread, start, size);
    bool bad_v = which == 1 && found.undefined < found.noaccess;
    bool bad = bad_v || found.noaccess != ~0ull;
    relay_answer_format(thread, "Address 0x%llX len %llu %s%s%s\n", (unsigned long long)start,
                        (unsigned long long)size, bad ? "not " : "",
                        bad && !bad_v ? "addressable" : words[which], bad ? ":" : "");
    if (bad)
        relay_answer_format(thread, bad_v ? "Uninitialised value at 0x%llX\n"
                                          : "bad address 0x%llX\n",
                            (unsigned long long)(bad_v ? found.undefined : found.noaccess));
    u32 count = describe_address(thread, start, parts);
    for (u32 i = 0; i < count; i++)
        relay_remark(thread, &parts[i]);
}

static void do_make_memory(ToolThread *thread, char *rest)
{
    static const char *const words[] = {"noaccess", "undefined", "defined",
                                        "Definedifaddressable", NULL};
    static const u32 requests[] = {0, 1, 2, 11};
    char *word = command_next_word(&rest);
    int which = word ? command_find_word(word, words) : -1;
    GuestAddr start;
    u64 size, result = 0;
    if (which < 0) {
        command_complain(thread, word, words);
        return;
    }
    if (!command_take_range(thread, &rest, &start, &size))
        return;
    const u64 args[6] = {('M' << 24 | 'C' << 16) + requests[which], start, size};
    requests_run(thread, args, &result);
}

static void do_xtmemory(ToolThread *thread, char *rest)
{
    (void)rest;
    if (heap_is_counted())
        heap_count_tell(thread, true);
    else
        relay_answer(thread, "xtmemory needs a program that was started with --xtree-memory\n");
}

// ------------------------------------------------------------------ dispatch

bool commands_run(ToolThread *thread, char *command)
{
    static const struct {
        const char *name;
        u32 shortest; // how many letters tell it from others
        void (*run)(ToolThread *thread, char *rest);
    } commands[] = {
        {"leak_check", 1, commands_leak_check},   {"block_list", 1, commands_block_list},
        {"who_points_at", 1, commands_who_points_at}, {"get_vbits", 1, do_get_vbits},
        {"xb", 2, do_xb},                   {"check_memory", 1, do_check_memory},
        {"make_memory", 1, do_make_memory}, {"xtmemory", 1, do_xtmemory},
    };
    char *rest = command;
    char *word = command_next_word(&rest);
    for (size_t i = 0; word && i < ARRAY_LEN(commands); i++) {
        size_t length = strlen(word);
        if (length >= commands[i].shortest && strncmp(word, commands[i].name, length) == 0) {
            // They look at what a search has found, which another thread could make anew.
            thread_stop_others(thread);
            commands[i].run(thread, rest);
            thread_resume_others(thread);
            return true;
        }
    }
    return false;
}
