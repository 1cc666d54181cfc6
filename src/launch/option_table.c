// SPDX-License-Identifier: MIT
//
// options.def and choices.def as arrays, and the value of every option that was
// not given.

#include <string.h>

#include "launch/option_table.h"

const OptionValue option_tools[] = {
#define TOOL(name_, summary) {.name = name_, .help = summary},
#define ABSENT_TOOL(name_, why) {.name = name_, .refusal = why},
#include "launch/options.def"
    {.name = NULL},
};

const Subcommand option_subcommands[] = {
#define SUBCOMMAND(name, arguments, help) {name, arguments, help},
#include "launch/options.def"
    {NULL, NULL, NULL},
};

// clang-format off
#define CHOICES(S)                         static const OptionValue values_##S[] = {
#define CHOICE(S, NAME, name_, help_)      {.name = name_, .help = help_, .value = S##_##NAME},
#define MEMBERS(S)                         static const OptionValue values_##S[] = {
#define MEMBER(S, NAME, name_, help_)      {.name = name_, .help = help_, .value = S##_##NAME},
#define ALIAS(S, NAME, name_)              {.name = name_, .value = S##_##NAME},
#define REFUSED_VALUE(S, name_, why)       {.name = name_, .refusal = why},
#define END_CHOICES                        {.name = NULL}};
#define END_MEMBERS                        {.name = NULL}};
#include "launch/choices.def"

// What the kinds of options.def stand for: those with arguments fill in more
// than the kind.
#define KIND_FLAG            .kind = OPTION_FLAG
#define KIND_BOOL            .kind = OPTION_BOOL
#define KIND_BITS(yes, no, except) \
    .kind = OPTION_BITS, .min = (yes), .max = (no), .unless = (except)
#define KIND_INT(low, high)  .kind = OPTION_INT, .min = (low), .max = (high)
#define KIND_FD              .kind = OPTION_FD, .min = 0, .max = INT32_MAX
#define KIND_FD_OR_NONE      .kind = OPTION_FD, .min = -1, .max = INT32_MAX
#define KIND_HEX(low, high)  .kind = OPTION_HEX, .min = (low), .max = (high)
#define KIND_SIZE(low, high) .kind = OPTION_SIZE, .min = (i64)(low), .max = (i64)(high)
#define KIND_PERCENT         .kind = OPTION_PERCENT
#define KIND_STRING          .kind = OPTION_STRING
#define KIND_TEXT            .kind = OPTION_TEXT
#define KIND_OPTIONAL_STRING .kind = OPTION_OPTIONAL_STRING
#define KIND_CONSTANT(text)  .kind = OPTION_CONSTANT, .accepted = (text)
#define KIND_SOCKET          .kind = OPTION_SOCKET
#define KIND_RANGES          .kind = OPTION_RANGES
#define KIND_FALLING_RANGE(size) .kind = OPTION_FALLING_RANGE, .max = (size)
#define KIND_PATH            .kind = OPTION_PATH
#define KIND_PATH_TEMPLATE   .kind = OPTION_PATH_TEMPLATE
#define KIND_LIST            .kind = OPTION_LIST
#define KIND_TEXT_LIST       .kind = OPTION_TEXT_LIST
#define KIND_PATH_LIST       .kind = OPTION_PATH_LIST
#define KIND_TOOL            .kind = OPTION_TOOL, .values = option_tools
#define KIND_CHOICE(S)       .kind = OPTION_CHOICE, .values = values_##S
#define KIND_SET(S)          .kind = OPTION_SET, .values = values_##S
#define KIND_LESS            .kind = OPTION_LESS
#define KIND_MORE            .kind = OPTION_MORE
// clang-format on

const OptionRow option_rows[] = {
#define OPTION(group_, name_, letter_, kind_, field_, arg_, help_)                                 \
    {                                                                                              \
        .name = name_,                                                                             \
        .arg = arg_,                                                                               \
        .help = help_,                                                                             \
        .field = offsetof(Options, field_),                                                        \
        .group = GROUP_##group_,                                                                   \
        .letter = letter_,                                                                         \
        KIND_##kind_,                                                                              \
    },
#define IGNORED(name_, arg_, why)                                                                  \
    {.name = name_, .arg = arg_, .help = why, .group = GROUP_IGNORED, .kind = OPTION_IGNORED},
#define REFUSED(name_, accepted_, arg_, why)                                                       \
    {                                                                                              \
        .name = name_,                                                                             \
        .arg = arg_,                                                                               \
        .help = why,                                                                               \
        .accepted = accepted_,                                                                     \
        .group = GROUP_REFUSED,                                                                    \
        .kind = OPTION_REFUSED,                                                                    \
    },
#include "launch/options.def"
};

const u32 option_row_count = ARRAY_LEN(option_rows);

_Static_assert(ARRAY_LEN(option_rows) <= OPTIONS_ROWS_MAX, "Options.given needs a bit for each");
_Static_assert(sizeof(Options) <= UINT16_MAX, "OptionRow.field must reach every field");

const Options option_defaults = {
    .tool = "memcheck",
    .vgdb = VGDB_YES,
    .log_fd = 2,
    .seccomp_fd = -1,
    .xml_fd = -1,
    .xml_protocol = 4,
    .num_callers = 12,
    .error_limit = true,
    .demangle = true,
    .read_inline_info = true,
    .run_libc_freeres = true,
    .run_cxx_freeres = true,
    .redzone_size_bytes = 16,
    .realloc_zero_bytes_frees = true,
    .alignment = 16,
    .xtree_memory_file = "xtmemory.kcg.%p",
    .xtree_compress_strings = true,
    .xtree_leak_file = "xtleak.kcg.%p",
    .cache_size_bytes = OPTIONS_CACHE_SIZE_DEFAULT,

    .leak_check = LEAK_CHECK_SUMMARY,
    .leak_resolution = LEAK_RESOLUTION_HIGH,
    .show_leak_kinds = LEAK_DEFINITE | LEAK_POSSIBLE,
    .errors_for_leak_kinds = LEAK_DEFINITE | LEAK_POSSIBLE,
    .leak_check_heuristics = HEURISTIC_ALL,
    .undef_value_errors = true,
    .track_origins = true,
    .partial_loads_ok = true,
    .keep_stacktraces = KEEP_STACKS_ALLOC_AND_FREE,
    .freelist_vol_bytes = 20000000,
    .freelist_big_blocks_bytes = 1000000,
    .show_mismatched_frees = true,
    .show_realloc_size_zero = true,
    .malloc_fill = -1,
    .free_fill = -1,

    .heap = true,
    .heap_admin_bytes = 8,
    .depth = 30,
    .threshold_ppm = 10000,
    .peak_inaccuracy_ppm = 10000,
    .time_unit = TIME_UNIT_MS,
    .detailed_freq = 1,
    .max_snapshots = 100,
    .massif_out_file = "massif.out.%p",
    .recording = true,
    .recording_file = "muninn.heap.%p",
    .max_recording_bytes = 256 * MiB,
};

typedef struct GroupRow {
    const char *title;
    const char *tool;
} GroupRow;

static const GroupRow groups[GROUP_COUNT] = {
    [GROUP_CORE] = {"Options", NULL},
    [GROUP_OUTPUT] = {"Where messages and reports go", NULL},
    [GROUP_FINDINGS] = {"Findings", NULL},
    [GROUP_NAMES] = {"Names in stacks", NULL},
    [GROUP_RARE] = {"Rarely needed", NULL},
    [GROUP_HEAP] = {"Tools that replace malloc", NULL},
    [GROUP_DEBUG] = {"Looking at the engine", NULL},
    [GROUP_MEMCHECK] = {"Options of memcheck", "memcheck"},
    [GROUP_MASSIF] = {"Options of massif", "massif"},
    [GROUP_IGNORED] = {"Accepted without effect", NULL},
    [GROUP_REFUSED] = {"Refused", NULL},
    [GROUP_INTERNAL] = {NULL, NULL},
};

const char *option_group_tool(u8 group)
{
    return groups[group].tool;
}

const char *option_group_title(u8 group)
{
    const char *tool = groups[group].tool;

    if (tool == NULL)
        return groups[group].title;
    for (const OptionValue *v = option_tools; v->name != NULL; v++)
        if (strcmp(v->name, tool) == 0)
            return v->refusal == NULL ? groups[group].title : NULL;
    return NULL;
}
