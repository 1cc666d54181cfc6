// SPDX-License-Identifier: MIT
//
// Requests that others answer: what reaches the hooks, and what the client gets back.
#include <sys/mman.h>

#include "engine/decode/decode.h"
#include "engine/request/request_internal.h"
#include "engine/toolapi/toolapi.h"
#include "unit.h"

#define ctx (&thread_ctx)

// Where a client may have memory, and the address sanitizer as well.
#define ARENA ((char *)0x20000000)

static char *arena(void)
{
    static bool is_mapped;
    if (!is_mapped)
        is_mapped = mmap(ARENA, 65536, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == ARENA;
    return ARENA;
}

static u64 text(const char *string)
{
    return (u64)strcpy(arena() + 4096, string);
}

// One request, as a block would bring it.
static u64 ask(u64 otherwise, u64 number, u64 a1, u64 a2, u64 a3)
{
    const u64 args[6] = { number, a1, a2, a3 };
    tool_select(&(Options){.tool = "none"});
    ctx->gpr[RAX] = (u64)memcpy(arena(), args, sizeof(args));
    ctx->gpr[RDX] = otherwise;
    ctx->pc = 0x1000;
    ctx->gateway.exit_link = REQUEST_CALL;
    request_run(ctx);
    return ctx->gpr[RDX];
}

TEST(a_request_ends_behind_its_nineteen_bytes_and_changes_rdx_only)
{
    u64 before[GPR_COUNT];
    for (unsigned i = 0; i < GPR_COUNT; i++)
        ctx->gpr[i] = i + 1;
    request_init(false);
    CHECK(ask(0, 0x1001, 0, 0, 0) == 1);
    memcpy(before, ctx->gpr, sizeof(before));
    CHECK(ctx->pc == 0x1000 + 19);
    for (unsigned i = 0; i < GPR_COUNT; i++)
        CHECK(i == RAX || i == RDX || before[i] == i + 1);
}

TEST(the_other_kinds_are_answered_in_rax_or_not_at_all)
{
    ctx->gpr[RAX] = 7;
    ctx->gpr[RDX] = 8;
    ctx->pc = 0x1000;
    ctx->gateway.exit_link = REQUEST_NOTHING;
    request_run(ctx);
    CHECK(ctx->gpr[RAX] == 7 && ctx->gpr[RDX] == 8 && ctx->pc == 0x1013);
    ctx->gateway.exit_link = REQUEST_GET_ORIGINAL;
    request_run(ctx);
    CHECK(ctx->gpr[RAX] == 0 && ctx->gpr[RDX] == 8 && ctx->pc == 0x1026);
}

TEST(wishes_for_silence_nest_and_never_go_below_none)
{
    CHECK(!request_errors_disabled(ctx));
    ask(0, 0x1801, 1, 0, 0);
    ask(0, 0x1801, 1, 0, 0);
    ask(0, 0x1801, ~0ull, 0, 0);
    CHECK(request_errors_disabled(ctx));
    ask(0, 0x1801, 5, 0, 0); // no such wish
    ask(0, 0x1801, ~0ull, 0, 0);
    CHECK(!request_errors_disabled(ctx));
    ask(0, 0x1801, ~0ull, 0, 0);
    ask(0, 0x1801, 1, 0, 0);
    CHECK(request_errors_disabled(ctx));
    ask(0, 0x1801, ~0ull, 0, 0);
}

static u64 count_errors(void)
{
    return 17;
}

TEST(errors_are_counted_by_whoever_finds_them)
{
    CHECK(ask(5, 0x1201, 0, 0, 0) == 0);
    request_error_count = count_errors;
    CHECK(ask(5, 0x1201, 0, 0, 0) == 17);
    request_error_count = NULL;
}

static char heard[2048];

static bool hear(ThreadCtx *from, const char *words)
{
    strcpy(heard, words);
    return from == ctx && strcmp(words, "leak_check") == 0;
}

TEST(a_monitor_command_tells_whether_it_is_known)
{
    request_monitor_hook = hear;
    CHECK(ask(0, 0x1202, text("leak_check"), 0, 0) == 0);
    CHECK(strcmp(heard, "leak_check") == 0);
    CHECK(ask(0, 0x1202, text("else"), 0, 0) == 1);
    request_monitor_hook = NULL;
    CHECK(ask(0, 0x1202, text("leak_check"), 0, 0) == 1);
}

static bool hear_option(ThreadCtx *from, const char *word, char *ret_error, size_t error_size)
{
    snprintf(ret_error, error_size, "nobody changes this one");
    return hear(from, word);
}

TEST(an_option_reaches_its_hook)
{
    request_option_hook = hear_option;
    ask(0, 0x1203, text("--verbose"), 0, 0);
    CHECK(strcmp(heard, "--verbose") == 0);
    request_option_hook = NULL;
}

static void place(ThreadCtx *caller, GuestAddr pc, char ret_text[REQUEST_PLACE_MAX])
{
    (void)caller;
    if (pc == 0x1234)
        strcpy(ret_text, "file.c:12");
    else
        memset(ret_text, 'x', REQUEST_PLACE_MAX); // not terminated
}

TEST(a_place_fits_its_64_bytes)
{
    char *buffer = arena() + 8192;
    request_place_hook = place;
    ask(0, 0x1701, 0x1234, (u64)buffer, 0);
    CHECK(strcmp(buffer, "file.c:12") == 0);
    buffer[64] = buffer[65] = 'q';
    ask(0, 0x1701, 1, (u64)buffer, 0);
    CHECK(strlen(buffer) == 63 && buffer[64] == 'q');
    request_place_hook = NULL;
    ask(0, 0x1701, 1, (u64)buffer, 0);
    CHECK(buffer[0] == 0);
}

TEST(registered_stacks_are_found_changed_and_forgotten)
{
    GuestAddr lo, hi;
    u64 first = ask(0, 0x1501, 0x1000, 0x1fff, 0);
    u64 second = ask(0, 0x1501, 0x5fff, 0x5000, 0);
    CHECK(first && second != first);
    CHECK(request_find_stack(0x1fff, &lo, &hi) && lo == 0x1000 && hi == 0x1fff);
    CHECK(request_find_stack(0x5800, &lo, &hi) && lo == 0x5000 && hi == 0x5fff);
    CHECK(!request_find_stack(0x2000, &lo, &hi));
    ask(0, 0x1503, first, 0x1000, 0x2fff);
    CHECK(request_find_stack(0x2000, &lo, &hi) && hi == 0x2fff);
    ask(0, 0x1502, first, 0, 0);
    ask(0, 0x1502, first, 0, 0);
    CHECK(!request_find_stack(0x1fff, &lo, &hi));
    CHECK(request_find_stack(0x5000, &lo, &hi));
    ask(0, 0x1502, second, 0, 0);
}

static unsigned lines;
static char last_line[REQUEST_LINE_MAX + 1];

static void keep_line(ThreadCtx *from, const char *line, u32 context)
{
    (void)from, (void)context;
    lines++;
    strcpy(last_line, line);
}

TEST(a_line_waits_for_its_end_or_for_somebody_else)
{
    u64 *list = (u64 *)(void *)(arena() + 8192);
    list[0] = 48 | 176ull << 32;
    request_text_hook = keep_line;
    CHECK(ask(0, 0x1403, text("half "), (u64)list, 0) == 5 && lines == 0);
    CHECK(ask(0, 0x1401, text("whole\nnext"), (u64)list, 0) == 10 && lines == 1);
    CHECK(strcmp(last_line, "half whole") == 0);
    request_text_flush(ctx);
    CHECK(lines == 2 && strcmp(last_line, "next") == 0);
    request_text_flush(ctx);
    CHECK(lines == 2);
    CHECK(ask(0, 0x1404, text("traced"), (u64)list, 0) == 6 && lines == 3);
}
