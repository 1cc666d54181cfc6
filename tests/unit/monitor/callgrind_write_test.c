// SPDX-License-Identifier: MIT
//
// Files in callgrind's format: the writer, line by line, and trees of stacks.
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "monitor/callgrind/callgrind.h"

static const CallgrindEvent two[] = {{"Ir", "Instructions"}, {"Bk", NULL}};

static CallgrindConfig config_of(bool has_instructions, bool compresses)
{
    return (CallgrindConfig){
        .creator = "test",
        .command = "prog\nwith a break",
        .pid = 7,
        .events = two,
        .event_count = 2,
        .has_instructions = has_instructions,
        .compresses = compresses,
    };
}

// What is written to the file, from the events on.
static char text[65536];
static FILE *open_text(void)
{
    memset(text, 0, sizeof(text));
    return fmemopen(text, sizeof(text) - 1, "w");
}

static const char *body(void)
{
    const char *events = strstr(text, "events:");
    return events ? events : text;
}

TEST(the_head_names_what_is_counted)
{
    FILE *out = open_text();
    CallgrindConfig config = config_of(false, true);
    CHECK(callgrind_close(callgrind_open(out, &config), (u64[]){0, 0}));
    fclose(out);
    CHECK(strcmp(text, "# callgrind format\nversion: 1\ncreator: test\npid: 7\n"
                       "cmd: progwith a break\n\npositions: line\nevent: Ir : Instructions\n"
                       "events: Ir Bk\n\ntotals: 0 0\n") == 0);
}

static void write_two_functions(const CallgrindConfig *config)
{
    FILE *out = open_text();
    CallgrindWriter *writer = callgrind_open(out, config);
    CallgrindPlace outer = {"/bin/p", "/src/a.c", "outer"}, inner = {"/bin/p", NULL, "inner"};
    callgrind_function(writer, &outer);
    callgrind_cost(writer, (CallgrindPosition){0x10, 3}, (u64[]){5, 0});
    callgrind_call(writer, &inner, (CallgrindPosition){0x20, 8}, 2, (CallgrindPosition){0x14, 4},
                   (u64[]){70, 1});
    callgrind_function(writer, &inner);
    callgrind_cost(writer, (CallgrindPosition){0x20, 8}, (u64[]){70, 1});
    CHECK(callgrind_close(writer, (u64[]){75, 1}));
    fclose(out);
}

TEST(a_name_is_written_once_and_a_number_from_then_on)
{
    CallgrindConfig config = config_of(false, true);
    write_two_functions(&config);
    CHECK(strcmp(body(), "events: Ir Bk\n\nob=(1) /bin/p\nfl=(1) /src/a.c\nfn=(1) outer\n3 5\n"
                         "cob=(1)\ncfi=(2) ???\ncfn=(2) inner\ncalls=2 8\n4 70 1\n"
                         "\nob=(1)\nfl=(2)\nfn=(2)\n8 70 1\n\ntotals: 75 1\n") == 0);
}

TEST(names_stand_in_full_if_they_are_not_compressed)
{
    CallgrindConfig config = config_of(false, false);
    write_two_functions(&config);
    CHECK(strstr(body(), "cob=/bin/p\ncfi=???\ncfn=inner\n"));
    CHECK(strstr(body(), "\nob=/bin/p\nfl=???\nfn=inner\n8 70 1\n"));
    CHECK(!strchr(body(), '('));
}

TEST(positions_have_addresses_if_they_are_wanted)
{
    CallgrindConfig config = config_of(true, true);
    write_two_functions(&config);
    CHECK(strstr(text, "positions: instr line\n"));
    CHECK(strstr(body(), "\n0x10 3 5\n"));
    CHECK(strstr(body(), "calls=2 0x20 8\n0x14 4 70 1\n"));
}

static Frame frame(const char *function, u32 line)
{
    return (Frame){.function = function, .directory = "/src", .file = "a.c", .line = line};
}

TEST(a_tree_sums_up_equal_stacks_and_leaves_out_the_allocator)
{
    CallgrindConfig config = config_of(false, true);
    CallTree *tree = calltree_new(2);
    Frame stack[] = {frame("malloc", 1), frame("leaf", 2), frame("main", 9)};
    Frame other[] = {frame("leaf", 2), frame("main", 8)};
    CHECK(calltree_add(tree, stack, 3, (u64[]){10, 1}));
    CHECK(calltree_add(tree, stack, 3, (u64[]){20, 1}));
    CHECK(calltree_add(tree, other, 2, (u64[]){5, 1}));
    CHECK(calltree_add(tree, NULL, 0, (u64[]){1, 1}));
    FILE *out = open_text();
    CHECK(calltree_put(tree, out, &config));
    fclose(out);
    CHECK(strcmp(body(), "events: Ir Bk\n\nfl=(1) /src/a.c\nfn=(1) leaf\n2 35 3\n"
                         "\nfl=(1)\nfn=(2) main\ncfi=(1)\ncfn=(1)\ncalls=0 2\n8 5 1\n"
                         "cfi=(1)\ncfn=(1)\ncalls=0 2\n9 30 2\n"
                         "\nfl=(2) ???\nfn=(3) ???\n0 1 1\n\ntotals: 36 4\n") == 0);
    calltree_free(tree);
}

TEST(a_tree_of_many_functions_keeps_its_sums)
{
    enum { FUNCTIONS = 3000 };
    CallgrindConfig config = config_of(false, true);
    CallTree *tree = calltree_new(2);
    static char names[FUNCTIONS][16];
    for (u32 i = 0; i < FUNCTIONS; i++) {
        snprintf(names[i], sizeof(names[i]), "f%u", i);
        Frame stack[] = {frame(names[i], i), frame("main", 1)};
        CHECK(calltree_add(tree, stack, 2, (u64[]){i, 1}));
    }
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    CHECK(calltree_put(tree, out, &config));
    fclose(out);
    char totals[64];
    snprintf(totals, sizeof(totals), "totals: %u %u\n", FUNCTIONS * (FUNCTIONS - 1) / 2,
             FUNCTIONS);
    CHECK(strstr(all, totals) && strstr(all, "fn=(1) f0\n") && strstr(all, " f2999\n"));
    free(all);
    calltree_free(tree);
}
