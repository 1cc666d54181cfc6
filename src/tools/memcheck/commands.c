// SPDX-License-Identifier: MIT
//
// Commands of the user's while the program runs, with the incumbent's words: searches for
// leaks, who points where, what is defined. Words may be shortened, as there.
#include "tools/memcheck/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/aspace/aspace.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/leaks.h"
#include "tools/memcheck/ranges.h"

const char commands_help[] =
    "  leak_check [full*|summary] [kinds SET|reachable|possibleleak*|definiteleak]\n"
    "      [heuristics SET] [increased*|changed|any|new] [unlimited*|limited N]\n"
    "                       search for leaks, against the search before\n"
    "  block_list N[..M] [unlimited*|limited MAX]\n"
    "                       the blocks of loss records of the last search\n"
    "  who_points_at ADDRESS [SIZE]\n"
    "                       where a pointer to there is found\n"
    "  get_vbits ADDRESS [SIZE]  which bits are undefined\n"
    "  xb ADDRESS [SIZE]    the same beside the bytes\n"
    "  check_memory [addressable|defined] ADDRESS [SIZE]\n"
    "  make_memory [noaccess|undefined|defined|Definedifaddressable] ADDRESS [SIZE]\n";

enum { SIZE_SHOWN_MAX = 1 << 16 };

// A line of an answer that reads as one of the report.
static void say(ToolThread *thread, const char *text)
{
    if (thread->answering)
        leaks_say(thread, text);
    else
        relay_note(thread, text);
}

// ------------------------------------------------------------------ words

static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t\n");
    if (!*word)
        return NULL;
    char *end = word + strcspn(word, " \t\n");
    *rest = *end ? end + 1 : end;
    *end = 0;
    return word;
}

// The index of the word in a list that ends in NULL, by its beginning; -1: none.
static int find_word(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (strncmp(word, words[i], strlen(word)) == 0)
            return i;
    }
    return -1;
}

static void complain(ToolThread *thread, const char *word, const char *const *words)
{
    char text[512];
    int at = snprintf(text, sizeof(text), "%.100s does not match any of '", word ? word : "");
    for (int i = 0; words[i] && at < (int)sizeof(text) - 40; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s ", words[i]);
    snprintf(text + at, sizeof(text) - (size_t)at, "'\n");
    relay_answer(thread, text);
}

// ADDRESS [SIZE], or ADDRESS[SIZE].
static bool take_range(ToolThread *thread, char **rest, GuestAddr *ret_start, u64 *ret_size)
{
    char *word = next_word(rest), *end;
    *ret_size = 1;
    if (!word) {
        relay_answer(thread, "missing address\n");
        return false;
    }
    *ret_start = strtoull(word, &end, 0);
    if (*end == '[') {
        *ret_size = strtoull(end + 1, &end, 0);
        end += *end == ']';
    } else if (*end == 0 && (word = next_word(rest))) {
        *ret_size = strtoull(word, &end, 0);
    }
    if (*end == 0)
        return true;
    relay_answer(thread, "missing or malformed address or length\n");
    return false;
}

// "definite,possible", "all", "none"; false: a word is unknown.
static bool take_set(const char *text, const char *const *names, const u32 *bits, u32 *ret_set)
{
    u32 set = 0;
    if (!text)
        return false;
    while (*text) {
        size_t length = strcspn(text, ",");
        int found = -1;
        for (int i = 0; names[i]; i++) {
            if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
                found = i;
        }
        if (found < 0)
            return false;
        set |= bits[found];
        text += length + (text[length] == ',');
    }
    *ret_set = set;
    return true;
}

// ------------------------------------------------------------------ leaks

static bool take_kinds(const char *text, u32 *ret_set)
{
    static const char *const names[] = {"definite", "indirect", "possible", "reachable",
                                        "all",      "none",     NULL};
    static const u32 bits[] = {LEAK_DEFINITE, LEAK_INDIRECT, LEAK_POSSIBLE, LEAK_REACHABLE,
                               LEAK_ALL,      0};
    return take_set(text, names, bits, ret_set);
}

static bool take_heuristics(const char *text, u32 *ret_set)
{
    static const char *const names[] = {"stdstring", "length64", "newarray", "multipleinheritance",
                                        "all",       "none",     NULL};
    static const u32 bits[] = {HEURISTIC_STDSTRING,  HEURISTIC_LENGTH64,
                               HEURISTIC_NEWARRAY,   HEURISTIC_MULTIPLE_INHERITANCE,
                               HEURISTIC_ALL,        0};
    return take_set(text, names, bits, ret_set);
}

static void do_leak_check(ToolThread *thread, char *rest)
{
    static const char *const words[] = {"full",         "summary",      "kinds",   "reachable",
                                        "possibleleak", "definiteleak", "heuristics", "increased",
                                        "changed",      "any",          "new",     "unlimited",
                                        "limited",      NULL};
    LeakWish wish = {
        .full = true,
        .by_command = true,
        .show = LEAK_DEFINITE | LEAK_POSSIBLE,
        .delta = LEAK_INCREASED,
    };
    for (char *word; (word = next_word(&rest));) {
        bool ok = true;
        switch (find_word(word, words)) {
        case 0: wish.full = true; break;
        case 1: wish.full = false; break;
        case 2: ok = take_kinds(next_word(&rest), &wish.show); break;
        case 3: wish.show = LEAK_ALL; break;
        case 4: wish.show = LEAK_DEFINITE | LEAK_POSSIBLE; break;
        case 5: wish.show = LEAK_DEFINITE; break;
        case 6: ok = take_heuristics(next_word(&rest), &wish.heuristics); break;
        case 7: wish.delta = LEAK_INCREASED; break;
        case 8: wish.delta = LEAK_CHANGED; break;
        case 9: wish.delta = LEAK_ANY; break;
        case 10: wish.delta = LEAK_NEW; break;
        case 11: wish.limit = 0; break;
        case 12:
            word = next_word(&rest);
            wish.limit = word ? strtoull(word, NULL, 10) : 0;
            ok = wish.limit > 0;
            break;
        default: complain(thread, word, words); return;
        }
        if (!ok) {
            relay_answer(thread, "missing or malformed argument\n");
            return;
        }
    }
    leaks_check(thread, &wish);
}

typedef struct Listing {
    ToolThread *thread;
    const LeakLast *last;
    u64 left;
} Listing;

static bool list_block(void *data, const LeakListed *listed)
{
    Listing *listing = data;
    const LeakBlock *block = &listing->last->scene.blocks.blocks[listed->block];
    char text[160];
    if (listing->left == 0)
        return false;
    listing->left--;
    int at = snprintf(text, sizeof(text), "%*s0x%llX[%llu]",
                      2 * (int)min_u64(listed->level, 20), "",
                      (unsigned long long)leak_block_start(block),
                      (unsigned long long)leak_block_size(block));
    if (listed->level)
        snprintf(text + at, sizeof(text) - (size_t)at, " indirect loss record %llu",
                 (unsigned long long)listed->record + 1);
    say(listing->thread, text);
    return true;
}

static void do_block_list(ToolThread *thread, char *rest)
{
    LeakLast *last = leaks_last();
    char *word = next_word(&rest), *end, text[256];
    Listing listing = {.thread = thread, .last = last, .left = ~0ull};
    u64 first = word ? strtoull(word, &end, 10) : 0, until = first;
    if (word && strncmp(end, "..", 2) == 0)
        until = strtoull(end + 2, &end, 10);
    if ((word = next_word(&rest)) && strncmp(word, "limited", strlen(word)) == 0) {
        word = next_word(&rest);
        listing.left = word ? strtoull(word, NULL, 10) : ~0ull;
    }
    if (!last) {
        relay_answer(thread, "no leak search to list blocks of: leak_check first\n");
        return;
    }
    u64 count = leak_record_count(last->check);
    if (first == 0 || first > count || until < first) {
        relay_answer(thread, "invalid loss record nr\n");
        return;
    }
    for (u64 i = first; i <= until && i <= count; i++) {
        const LeakRecord *record = leak_record(last->check, i - 1);
        leaks_record_text(record, i, count, false, text, sizeof(text));
        say(thread, text);
        relay_remark(thread, &(RelayPart){.kind = PART_NONE, .context = record->context});
        leak_list_blocks(last->check, i - 1, list_block, &listing);
    }
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

static bool show_pointer(void *data, const LeakPointer *pointer)
{
    static const char *const names[] = {"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
                                        "R8",  "R9",  "R10", "R11", "R12", "R13", "R14", "R15"};
    const Pointers *p = data;
    RelayPart parts[MEMCHECK_PARTS_MAX];
    char what[96], text[160];
    say_pointed(what, sizeof(what), p, pointer->value);
    if (pointer->place == LEAK_IN_WORD) {
        u16 place = p->scene->word_places[pointer->index];
        snprintf(text, sizeof(text), "tid %u register %s %s", place >> 4, names[place & 15], what);
        say(p->thread, text);
        return true;
    }
    snprintf(text, sizeof(text), "*0x%llx %s", (unsigned long long)pointer->location, what);
    say(p->thread, text);
    u32 count = describe_address(p->thread, pointer->location, parts);
    for (u32 i = 0; i < count; i++)
        relay_remark(p->thread, &parts[i]);
    return true;
}

static void do_who_points_at(ToolThread *thread, char *rest)
{
    LeakScene scene;
    GuestAddr address;
    u64 size;
    char text[128];
    if (!take_range(thread, &rest, &address, &size))
        return;
    if (address == 0) {
        relay_answer(thread, "Cannot search who points at 0x0\n");
        return;
    }
    if (size > 1)
        snprintf(text, sizeof(text), "Searching for pointers pointing in %llu bytes from 0x%llx",
                 (unsigned long long)size, (unsigned long long)address);
    else
        snprintf(text, sizeof(text), "Searching for pointers to 0x%llx",
                 (unsigned long long)address);
    say(thread, text);
    thread_stop_others(thread);
    if (leaks_scene_open(thread, 0, &scene)) {
        Pointers pointers = {thread, &scene, address};
        leak_who_points_at(&scene.input, address, size ? size : 1, show_pointer, &pointers);
        leaks_scene_close(&scene);
    } else {
        relay_answer(thread, "no memory for the search\n");
    }
    thread_resume_others(thread);
}

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
    if (!take_range(thread, &rest, &start, &size))
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
    if (!take_range(thread, &rest, &start, &size))
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
    char *word = next_word(&rest);
    int which = word ? find_word(word, words) : -1;
    GuestAddr start;
    u64 size;
    if (which < 0) {
        complain(thread, word, words);
        return;
    }
    if (!take_range(thread, &rest, &start, &size))
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
    char *word = next_word(&rest);
    int which = word ? find_word(word, words) : -1;
    GuestAddr start;
    u64 size, result = 0;
    if (which < 0) {
        complain(thread, word, words);
        return;
    }
    if (!take_range(thread, &rest, &start, &size))
        return;
    const u64 args[6] = {('M' << 24 | 'C' << 16) + requests[which], start, size};
    requests_run(thread, args, &result);
}

// ------------------------------------------------------------------ dispatch

bool commands_run(ToolThread *thread, char *command)
{
    static const struct {
        const char *name;
        u32 shortest; // how many letters tell it from others
        void (*run)(ToolThread *thread, char *rest);
    } commands[] = {
        {"leak_check", 1, do_leak_check},   {"block_list", 1, do_block_list},
        {"who_points_at", 1, do_who_points_at}, {"get_vbits", 1, do_get_vbits},
        {"xb", 2, do_xb},                   {"check_memory", 1, do_check_memory},
        {"make_memory", 1, do_make_memory},
    };
    char *rest = command;
    char *word = next_word(&rest);
    for (size_t i = 0; word && i < ARRAY_LEN(commands); i++) {
        size_t length = strlen(word);
        if (length >= commands[i].shortest && strncmp(word, commands[i].name, length) == 0) {
            commands[i].run(thread, rest);
            return true;
        }
    }
    return false;
}
