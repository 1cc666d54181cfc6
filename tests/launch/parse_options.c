// SPDX-License-Identifier: MIT
//
// The option parser by itself, for tools that may or may not be in this build:
//   parse_options TOOL WORD...    prints the options handed to the engine, one a
//                                 line, or the reason they are refused; exits 1 then
//   parse_options --fuzz COUNT    parses texts made of mangled options; what is
//                                 accepted must come back the same from its own
//                                 command line
// Meant for the sanitizers: it allocates exactly what is asked for.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/option_table.h"
#include "launch/options.h"

static Options first, second;

// Options -> command line -> Options -> command line: both lines must agree.
static int hand_over(Options *options, char ***ret_argv)
{
    size_t size = options_text_size(options);
    char *text = malloc(size);
    char **argv = calloc(OPTIONS_ARGV_MAX + 1, sizeof(*argv));

    int count = options_to_argv(options, text, size, argv, OPTIONS_ARGV_MAX);
    if (count < 0) {
        fprintf(stderr, "options_text_size() is too small\n");
        abort();
    }
    *ret_argv = argv;
    return count;
}

static void check_round_trip(const char *tool)
{
    char **argv, **again;

    first.muninn_exe = "/muninn";
    // The tool goes beside the line, since it may be one that is not there.
    first.tool = option_defaults.tool;
    int count = hand_over(&first, &argv);
    options_init(&second);
    second.tool = tool;
    memmove(argv + 1, argv, (size_t)count * sizeof(*argv));
    if (options_parse(count + 1, argv, &second) != count + 1) {
        fprintf(stderr, "what was accepted is refused by the engine: %s\n", second.error);
        abort();
    }
    second.tool = option_defaults.tool;
    int again_count = hand_over(&second, &again);
    bool same = count == again_count;
    for (int i = 0; same && i < count; i++)
        same = strcmp(argv[i + 1], again[i]) == 0;
    if (!same) {
        fprintf(stderr, "the engine understands other options than the launcher\n");
        abort();
    }
    if (count > 0)
        free(argv[1]);
    if (again_count > 0)
        free(again[0]);
    free(argv);
    free(again);
}

static int parse_words(int argc, char **argv)
{
    char **line;

    options_init(&first);
    first.tool = argv[1];
    int index = options_parse(argc - 1, argv + 1, &first);
    if (index < 0 || options_settle(&first) < 0) {
        printf("%s\n", first.error);
        return 1;
    }
    first.muninn_exe = NULL;
    int count = hand_over(&first, &line);
    for (int i = 0; i < count; i++)
        printf("%s\n", line[i]);
    return 0;
}

// ---------------------------------------------------------------- fuzzing

static u64 seed = 1;

static u32 random_below(u32 limit)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)(seed >> 33) % limit;
}

static const char *const pieces[] = {
    "yes", "no", "all", "none", "-1", "0", "1", "99999999999999999999", "64m", "1.5", "100.00001",
    "0x10-0x20", "8192-8189,", ",", ",,", "%p", "%q{HOME}", "%q{", "%", "127.0.0.1:1500", "1.2.3",
    "'", "\"", "\\", " ", "#", "\n", "=", "--", "-", "ff", "0x100", "memcheck:", "\xff\xfe",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static void append(char *text, size_t size, const char *piece)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s", piece);
}

static void append_option(char *text, size_t size)
{
    const OptionRow *row = &option_rows[random_below(option_row_count)];

    append(text, size, random_below(8) == 0 ? "--memcheck:" : "--");
    append(text, size, row->name);
    if (random_below(10) != 0)
        append(text, size, "=");
    if (row->values != NULL && random_below(2) == 0) {
        u32 count = 0;
        while (row->values[count].name != NULL)
            count++;
        append(text, size, row->values[random_below(count)].name);
    }
    for (u32 n = random_below(3); n > 0; n--)
        append(text, size, pieces[random_below(ARRAY_LEN(pieces))]);
    append(text, size, " ");
}

static void make_text(char *text, size_t size)
{
    text[0] = '\0';
    for (u32 n = 1 + random_below(4); n > 0; n--)
        append_option(text, size);
    size_t len = strlen(text);
    for (u32 n = random_below(4) == 0 ? random_below(4) : 0; n > 0; n--)
        text[random_below((u32)len)] = (char)(1 + random_below(255));
}

static void fuzz(u32 count)
{
    static const char *const tools[] = {"none", "count", "memcheck", "massif"};
    u32 accepted = 0;

    for (u32 i = 0; i < count; i++) {
        char text[2048], path[64];
        bool is_open;
        const char *tool = tools[random_below(ARRAY_LEN(tools))];

        make_text(text, sizeof(text));
        // Exactly as large as it is, so that a read behind its end is seen.
        char *copy = strdup(text);
        u32 max = random_below(4) == 0 ? random_below(3) : (u32)strlen(copy) + 1;
        char **words = calloc(max + 2, sizeof(*words));
        u32 found = options_split_text(copy, words + 1, max, &is_open);
        words[0] = (char *)"muninn";
        options_init(&first);
        first.tool = tool;
        int argc = 1 + (int)(found < max ? found : max);
        if (options_parse(argc, words, &first) >= 0 && options_settle(&first) == 0) {
            accepted++;
            if (first.log_file != NULL)
                options_expand_path(first.log_file, 1, 2, path, sizeof(path));
            options_child_is_skipped(&first, "/bin/true");
            options_child_is_skipped_by_arg(&first, words);
            // What --tool= named last is what the engine is started with.
            if (first.muninn_exe == NULL)
                check_round_trip(first.tool);
        }
        free(words);
        free(copy);
    }
    printf("%u of %u accepted\n", accepted, count);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--fuzz") == 0) {
        fuzz((u32)atoi(argv[2]));
        return 0;
    }
    return argc < 2 ? 2 : parse_words(argc, argv);
}
