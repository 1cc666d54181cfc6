// SPDX-License-Identifier: MIT
//
// Commands about leaks: a search, the blocks of its records, who points where.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pkru_x64.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/commands/commands.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/report/report.h"

static bool take_kinds(const char *text, u32 *ret_set)
{
    static const char *const names[] = {"definite", "indirect", "possible", "reachable",
                                        "all",      "none",     NULL};
    static const u32 bits[] = {LEAK_DEFINITE, LEAK_INDIRECT, LEAK_POSSIBLE, LEAK_REACHABLE,
                               LEAK_ALL,      0};
    return command_take_set(text, names, bits, ret_set);
}

static bool take_heuristics(const char *text, u32 *ret_set)
{
    static const char *const names[] = {"stdstring", "length64", "newarray", "multipleinheritance",
                                        "all",       "none",     NULL};
    static const u32 bits[] = {HEURISTIC_STDSTRING,  HEURISTIC_LENGTH64,
                               HEURISTIC_NEWARRAY,   HEURISTIC_MULTIPLE_INHERITANCE,
                               HEURISTIC_ALL,        0};
    return command_take_set(text, names, bits, ret_set);
}

void commands_leak_check(ToolThread *thread, char *rest)
{
    static const char *const words[] = {"full",         "summary",      "kinds",   "reachable",
                                        "possibleleak", "definiteleak", "heuristics", "increased",
                                        "changed",      "any",          "new",     "unlimited",
                                        "limited",      "xtleak",       NULL};
    LeakWish wish = {
        .full = true,
        .by_command = true,
        .show = LEAK_DEFINITE | LEAK_POSSIBLE,
        .delta = LEAK_INCREASED,
    };
    for (char *word; (word = command_next_word(&rest));) {
        bool ok = true;
        switch (command_find_word(word, words)) {
        case 0: wish.full = true; break;
        case 1: wish.full = false; break;
        case 2: ok = take_kinds(command_next_word(&rest), &wish.show); break;
        case 3: wish.show = LEAK_ALL; break;
        case 4: wish.show = LEAK_DEFINITE | LEAK_POSSIBLE; break;
        case 5: wish.show = LEAK_DEFINITE; break;
        case 6: ok = take_heuristics(command_next_word(&rest), &wish.heuristics); break;
        case 7: wish.delta = LEAK_INCREASED; break;
        case 8: wish.delta = LEAK_CHANGED; break;
        case 9: wish.delta = LEAK_ANY; break;
        case 10: wish.delta = LEAK_NEW; break;
        case 11: wish.limit = 0; break;
        case 12:
            word = command_next_word(&rest);
            wish.limit = word ? strtoull(word, NULL, 10) : 0;
            ok = wish.limit > 0;
            break;
        case 13:
            wish.as_tree = true;
            wish.show = LEAK_ALL;
            wish.delta = LEAK_ANY;
            break;
        default: command_complain(thread, word, words); return;
        }
        if (!ok) {
            relay_answer(thread, "missing or malformed argument\n");
            return;
        }
    }
    leaks_check(thread, &wish);
}

// ------------------------------------------------------------------ blocks

static const char *const heuristic_names[LEAK_HEURISTIC_COUNT] = {
    [LEAK_STDSTRING] = "stdstring",
    [LEAK_LENGTH64] = "length64",
    [LEAK_NEWARRAY] = "newarray",
    [LEAK_MULTIPLE_INHERITANCE] = "multipleinheritance",
};

typedef struct Listing {
    ToolThread *thread;
    LeakLast *last;
    u64 first, until; // records
    u64 left;         // blocks to list
    u32 heuristics;   // only blocks that were found by these; 0: all
    u64 record;       // that is listed, from 1
    bool has_begun;   // its line has been said
    u64 gone;         // of its blocks: freed since the search
} Listing;

// N or N..M.
static bool take_records(ToolThread *thread, const char *word, Listing *listing)
{
    char *end;
    if (!word) {
        relay_answer(thread, "expecting integer or slice <from>..<to>\n");
        return false;
    }
    listing->first = listing->until = strtoull(word, &end, 10);
    bool ok = end != word;
    if (ok && strncmp(end, "..", 2) == 0) {
        word = end + 2;
        listing->until = strtoull(word, &end, 10);
        ok = end != word;
    }
    if (!ok || *end)
        relay_answer(thread, "invalid integer or slice <from>..<to>\n");
    else if (listing->until < listing->first)
        relay_answer(thread, "<from> cannot be bigger than <to> in slice <from>..<to>\n");
    else
        return true;
    return false;
}

static bool take_listing(ToolThread *thread, char *rest, Listing *listing)
{
    static const char *const words[] = {"unlimited", "limited", "heuristics", NULL};
    if (!take_records(thread, command_next_word(&rest), listing))
        return false;
    for (char *word; (word = command_next_word(&rest));) {
        switch (command_find_word(word, words)) {
        case 0: listing->left = ~0ull; break;
        case 1:
            word = command_next_word(&rest);
            listing->left = word ? strtoull(word, NULL, 10) : 0;
            if (!listing->left) {
                relay_answer(thread, "missing integer value\n");
                return false;
            }
            break;
        case 2:
            if (!take_heuristics(command_next_word(&rest), &listing->heuristics)) {
                relay_answer(thread, "missing or malformed argument\n");
                return false;
            }
            break;
        default: command_complain(thread, word, words); return false;
        }
    }
    return true;
}

// A program that runs frees blocks all the time; those that are still there are of interest.
static bool is_gone(const LeakLast *last, const LeakBlock *block)
{
    HeapBlock now;
    if (!last->is_stale)
        return false;
    return !heap_find(leak_block_start(block), &now) || now.state != HEAP_LIVE ||
           now.start != leak_block_start(block) || now.size_bytes != leak_block_size(block) ||
           now.alloc_context != leak_block_context(block);
}

static void begin_record(Listing *listing)
{
    const LeakRecord *record = leak_record(listing->last->check, listing->record - 1);
    char text[256];
    if (listing->has_begun)
        return;
    listing->has_begun = true;
    leaks_record_text(record, listing->record, leak_record_count(listing->last->check), text,
                      sizeof(text));
    command_say(listing->thread, text);
    relay_remark(listing->thread, &(RelayPart){.kind = PART_NONE, .context = record->context});
}

static bool list_block(void *data, const LeakListed *listed)
{
    Listing *listing = data;
    const LeakBlock *block = &listing->last->scene.blocks.blocks[listed->block];
    char text[160];
    if (listing->left == 0)
        return false;
    if (listing->heuristics && !(listing->heuristics & LEAK_HEURISTIC_BIT(listed->heuristic)))
        return true;
    begin_record(listing);
    if (is_gone(listing->last, block)) {
        listing->gone++;
        return true;
    }
    listing->left--;
    int at = snprintf(text, sizeof(text), "%*s0x%llX[%llu]",
                      2 * (int)min_u64(listed->level, 20), "",
                      (unsigned long long)leak_block_start(block),
                      (unsigned long long)leak_block_size(block));
    if (listed->level)
        snprintf(text + at, sizeof(text) - (size_t)at, " indirect loss record %llu",
                 (unsigned long long)listed->record + 1);
    else if (listed->heuristic)
        snprintf(text + at, sizeof(text) - (size_t)at, " (found via heuristic %s)",
                 heuristic_names[listed->heuristic]);
    command_say(listing->thread, text);
    return true;
}

static void list_record(Listing *listing, u64 number)
{
    char text[64];
    listing->record = number;
    listing->has_begun = false;
    listing->gone = 0;
    leak_list_blocks(listing->last->check, number - 1, list_block, listing);
    if (listing->gone) {
        snprintf(text, sizeof(text), "%llu blocks were freed since the search",
                 (unsigned long long)listing->gone);
        command_say(listing->thread, text);
    }
}

void commands_block_list(ToolThread *thread, char *rest)
{
    Listing listing = {.thread = thread, .last = leaks_last(), .left = ~0ull};
    if (!take_listing(thread, rest, &listing))
        return;
    if (!listing.last) {
        relay_answer(thread, "no leak search to list blocks of: leak_check first\n");
        return;
    }
    listing.heuristics = leaks_heuristic_bits(listing.heuristics);
    u64 count = leak_record_count(listing.last->check);
    if (listing.first == 0 || listing.first > count) {
        relay_answer(thread, "invalid loss record nr\n");
        return;
    }
    for (u64 i = listing.first; i <= min_u64(listing.until, count) && listing.left; i++)
        list_record(&listing, i);
}

// ------------------------------------------------------------------ who points at

typedef struct Pointers {
    ToolThread *thread;
    const LeakScene *scene;
    GuestAddr target;
} Pointers;

static void say_pointed(char *text, size_t size, const Pointers *p, u64 value)
{
    if (value == p->target)
        snprintf(text, size, "points at 0x%llx", (unsigned long long)value);
    else
        snprintf(text, size, "interior points at %llu bytes inside 0x%llx",
                 (unsigned long long)(value - p->target), (unsigned long long)p->target);
}

// By which heuristics a pointer to the inside of a block counts as one to the block.
static void say_heuristics(const Pointers *p, u64 value)
{
    HeapBlock block;
    char text[160];
    if (!heap_find(value, &block) || block.state != HEAP_LIVE ||
        value - block.start >= block.size_bytes)
        return;
    for (u32 h = LEAK_BY_START + 1; h < LEAK_HEURISTIC_COUNT; h++) {
        if (!leak_heuristic_takes(&p->scene->input, (LeakHeuristic)h, block.start,
                                  block.size_bytes, value))
            continue;
        snprintf(text, sizeof(text),
                 "block at 0x%llx considered reachable by ptr 0x%llx using %s heuristic",
                 (unsigned long long)block.start, (unsigned long long)value, heuristic_names[h]);
        command_say(p->thread, text);
    }
}

static bool show_pointer(void *data, const LeakPointer *pointer)
{
    static const char *const names[] = {"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
                                        "R8",  "R9",  "R10", "R11", "R12", "R13", "R14", "R15"};
    const Pointers *p = data;
    RelayPart parts[MEMCHECK_PARTS_MAX];
    char what[96], text[160];
    say_pointed(what, sizeof(what), p, pointer->value);
    if (pointer->place == LEAK_IN_WORD) {
        u32 place = p->scene->word_places[pointer->index];
        snprintf(text, sizeof(text), "tid %u register %s %s", place >> 4, names[place & 15], what);
        command_say(p->thread, text);
        say_heuristics(p, pointer->value);
        return true;
    }
    snprintf(text, sizeof(text), "*0x%llx %s", (unsigned long long)pointer->location, what);
    command_say(p->thread, text);
    u32 count = describe_address(p->thread, pointer->location, parts);
    for (u32 i = 0; i < count; i++)
        relay_remark(p->thread, &parts[i]);
    say_heuristics(p, pointer->value);
    return true;
}

void commands_who_points_at(ToolThread *thread, char *rest)
{
    LeakScene scene;
    GuestAddr address;
    u64 size;
    char text[128];
    if (!command_take_range(thread, &rest, &address, &size))
        return;
    if (address == 0) {
        relay_answer(thread, "missing or malformed address\n");
        return;
    }
    if (size > 1)
        snprintf(text, sizeof(text), "Searching for pointers pointing in %llu bytes from 0x%llx",
                 (unsigned long long)size, (unsigned long long)address);
    else
        snprintf(text, sizeof(text), "Searching for pointers to 0x%llx",
                 (unsigned long long)address);
    command_say(thread, text);
    u32 keys = pkru_open();
    thread_stop_others(thread);
    if (leaks_scene_open(thread, 0, &scene)) {
        Pointers pointers = {thread, &scene, address};
        leak_who_points_at(&scene.input, address, size ? size : 1, show_pointer, &pointers);
        leaks_scene_close(&scene);
    } else {
        relay_answer(thread, "no memory for the search\n");
    }
    thread_resume_others(thread);
    pkru_write(keys);
}
