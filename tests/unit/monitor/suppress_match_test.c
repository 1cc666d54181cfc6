// SPDX-License-Identifier: MIT
//
// The matcher against a slow one that is obviously right, on random entries and
// stacks; and its speed, on inputs of the size that people have and on inputs made to
// be slow.
#include <stdlib.h>
#include <time.h>

#include "../unit.h"
#include "monitor/suppress/suppress.h"

static u64 seed = 88172645463325252ull;

static u64 random_below(u64 limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

// Of processor time: what others do on the machine does not count.
static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// ----------------------------------------------------------------- the reference

static bool slow_glob(const char *pattern, const char *text)
{
    if (*pattern == '*')
        return slow_glob(pattern + 1, text) || (*text && slow_glob(pattern, text + 1));
    if (!*pattern || !*text)
        return !*pattern && !*text;
    return (*pattern == '?' || *pattern == *text) && slow_glob(pattern + 1, text + 1);
}

static bool slow_stack(char lines[][16], size_t line_count, const Frame *frames, size_t count)
{
    if (line_count == 0)
        return true;
    if (strcmp(lines[0], "...") == 0)
        return slow_stack(lines + 1, line_count - 1, frames, count) ||
               (count && slow_stack(lines, line_count, frames + 1, count - 1));
    if (count == 0)
        return false;
    const char *text = strncmp(lines[0], "fun:", 4) == 0 ? frames[0].function : frames[0].object;
    return slow_glob(lines[0] + 4, text) &&
           slow_stack(lines + 1, line_count - 1, frames + 1, count - 1);
}

// ------------------------------------------------------------------ random inputs

static void random_text(char *text, size_t max, const char *alphabet)
{
    size_t size = 1 + random_below(max);

    for (size_t i = 0; i < size; i++)
        text[i] = alphabet[random_below(strlen(alphabet))];
    text[size] = '\0';
}

#define ENTRIES 6

static char lines[ENTRIES][8][16];
static size_t line_counts[ENTRIES];
static size_t name_max; // longer names match less, but reach more of the filter
static char file_text[4096];

static void random_entries(void)
{
    size_t size = 0;

    for (size_t e = 0; e < ENTRIES; e++) {
        bool has_location = false;

        line_counts[e] = 1 + random_below(7);
        size += (size_t)sprintf(file_text + size, "{\n%zu\nMemcheck:Cond\n", e);
        for (size_t i = 0; i < line_counts[e]; i++) {
            bool last = i + 1 == line_counts[e];

            if (random_below(3) == 0 && (has_location || !last)) {
                strcpy(lines[e][i], "...");
            } else {
                strcpy(lines[e][i], random_below(4) ? "fun:" : "obj:");
                random_text(lines[e][i] + 4, name_max, random_below(2) ? "ab" : "ab*?*");
                has_location = true;
            }
            size += (size_t)sprintf(file_text + size, "%s\n", lines[e][i]);
        }
        size += (size_t)sprintf(file_text + size, "}\n");
    }
}

TEST(the_matcher_agrees_with_one_that_is_obviously_right)
{
    char names[8][16];
    size_t matched = 0;

    for (int round = 0; round < 10000; round++) {
        SuppressSet *set = suppress_new();
        const char *error = NULL;

        name_max = 4 + random_below(5);
        random_entries();
        if (!suppress_parse(set, "t", file_text, strlen(file_text), &error))
            FAIL("%s", error);
        for (int stack = 0; stack < 10; stack++) {
            Frame frames[8];
            SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, frames, random_below(9) };
            const char *wanted = NULL;
            char number[24];

            for (size_t i = 0; i < 8; i++) {
                random_text(names[i], name_max, "ab");
                frames[i] = (Frame){ .function = names[i], .object = names[random_below(i + 1)] };
            }
            for (size_t e = 0; e < ENTRIES && !wanted; e++) {
                snprintf(number, sizeof(number), "%zu", e);
                if (slow_stack(lines[e], line_counts[e], frames, query.count))
                    wanted = number;
            }
            const Suppression *got = suppress_match(set, &query);
            if (!got != !wanted || (got && strcmp(got->name, wanted) != 0))
                FAIL("%s instead of %s:\n%s", got ? got->name : "none", wanted, file_text);
            matched += got != NULL;
        }
        suppress_free(set);
    }
    CHECK(matched > 10000 && matched < 90000); // else the inputs prove nothing
}

// ------------------------------------------------------------------------- speed

// A file of the given entries, each with its number in place of %zu.
static char *repeat(const char *format, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < count; i++)
        fprintf(out, format, i, i);
    fclose(out);
    return text;
}

enum { LIMIT_S = 20 }; // usual are 0.2 s, a thing that is exponential never ends

static double time_matches(const char *text, const SuppressQuery *query, size_t count)
{
    SuppressSet *set = suppress_new();
    const char *error = NULL;

    if (!suppress_parse(set, "t", text, strlen(text), &error))
        FAIL("%s", error);
    double start = seconds();
    for (size_t i = 0; i < count; i++)
        CHECK(!suppress_match(set, query));
    double spent = seconds() - start;
    suppress_free(set);
    return spent;
}

static const Frame usual_stack[] = {
    { .function = "malloc", .mangled = "malloc", .object = "/usr/lib/libc.so.6" },
    { .function = "std::vector<int, std::allocator<int> >::push_back(int const&)",
      .mangled = "_ZNSt6vectorIiSaIiEE9push_backERKi", .object = "/home/me/prog" },
    { .function = "app::one(int)", .mangled = "_ZN3app3oneEi", .object = "/home/me/prog" },
    { .function = "app::two(int)", .mangled = "_ZN3app3twoEi", .object = "/home/me/prog" },
    { .function = "app::three(int)", .mangled = "_ZN3app5threeEi", .object = "/home/me/prog" },
    { .function = "app::four(int)", .mangled = "_ZN3app4fourEi", .object = "/home/me/prog" },
    { .function = "g_main_loop", .mangled = "g_main_loop", .object = "/usr/lib/libglib.so" },
    { .function = "g_main_two", .mangled = "g_main_two", .object = "/usr/lib/libglib.so" },
    { .function = "app::run(int)", .mangled = "_ZN3app3runEi", .object = "/home/me/prog" },
    { .function = "main", .mangled = "main", .object = "/home/me/prog" },
    { .function = "__libc_start_main", .object = "/usr/lib/libc.so.6" },
    { .function = "_start", .object = "/home/me/prog" },
};

TEST(ten_thousand_findings_meet_a_thousand_entries_soon)
{
    static const char *const formats[] = {
        "{\nn%zu\nMemcheck:Leak\nfun:malloc\n...\nfun:lib_function_%zu\n}\n",
        "{\nn%zu\nMemcheck:Leak\nfun:*alloc\n...\nfun:*_function_%zu*\n}\n",
        "{\nn%zu\nMemcheck:Leak\n...\nobj:*/liba%zu.so*\n}\n",
    };
    SuppressQuery query = { "Memcheck", "Leak", NULL, "definite", usual_stack,
                            ARRAY_LEN(usual_stack) };

    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        char *text = repeat(formats[i], 1000);
        double spent = time_matches(text, &query, 10000);

        free(text);
        if (spent > LIMIT_S)
            FAIL("%s took %.1f s", formats[i], spent);
        printf("# 10,000 findings, 1,000 entries: %.3f s\n", spent);
    }
}

TEST(entries_of_other_kinds_cost_nothing)
{
    SuppressQuery query = { "Memcheck", "Leak", NULL, "definite", usual_stack,
                            ARRAY_LEN(usual_stack) };
    char *text = repeat("{\nn%zu\nMemcheck,Helgrind:Cond\n...\nobj:*x*%zu\n}\n", 20000);

    CHECK(time_matches(text, &query, 10000) < LIMIT_S);
    free(text);
}

TEST(many_dots_are_not_exponential)
{
    Frame frames[500];
    SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, frames, ARRAY_LEN(frames) };
    char *middle = repeat("...\nfun:a*\nfun:a\n", 160);
    char *text = malloc(strlen(middle) + 100);

    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        frames[i] = (Frame){ .function = "a" };
    sprintf(text, "{\nn\nMemcheck:Cond\n%s...\nfun:b\n}\n", middle);
    CHECK(time_matches(text, &query, 10) < LIMIT_S);
    free(text);
    free(middle);
}

TEST(many_stars_are_not_exponential)
{
    static char name[100001], text[60000];
    Frame frame = { .function = name };
    SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, &frame, 1 };
    size_t size = (size_t)sprintf(text, "{\nn\nMemcheck:Cond\nfun:");

    memset(name, 'a', sizeof(name) - 1);
    for (int i = 0; i < 20000; i++)
        size += (size_t)sprintf(text + size, "*a");
    strcpy(text + size, "*b\n}\n");
    CHECK(time_matches(text, &query, 10) < LIMIT_S);

    size = (size_t)sprintf(text, "{\nn\nMemcheck:Cond\nfun:*");
    memset(text + size, 'a', 40000);
    strcpy(text + size + 40000, "b*\n}\n");
    CHECK(time_matches(text, &query, 10) < LIMIT_S);
}

// ---------------------------------------------------------------------- hostile files

// Reads the text in time; whether it is accepted is up to the caller to check.
static bool accepted_in_time(const char *text, size_t size, size_t count)
{
    SuppressSet *set = suppress_new();
    SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, usual_stack, ARRAY_LEN(usual_stack) };
    const char *error = NULL;
    double start = seconds();
    bool accepted = suppress_parse(set, "t", text, size, &error);

    CHECK_EQ(suppress_count(set), accepted ? count : 0);
    CHECK(accepted == !error);
    suppress_match(set, &query);
    suppress_match(set, &query);
    if (seconds() - start > 5 * LIMIT_S)
        FAIL("took %.1f s", seconds() - start);
    suppress_free(set);
    return accepted;
}

TEST(a_million_entries_are_read)
{
    char *text = repeat("{\nn%zu\nMemcheck:Cond\nfun:f%zu\n}\n", 1000000);

    CHECK(accepted_in_time(text, strlen(text), 1000000));
    free(text);
}

TEST(a_million_kinds_of_unknown_tools_are_read)
{
    char *text = repeat("{\nn\nTool%zu:Kind%zu\nfun:f\n}\n", 1000000);

    CHECK(accepted_in_time(text, strlen(text), 1000000));
    free(text);
}

TEST(a_million_dots_are_one)
{
    char *middle = repeat("...\n", 1000000);
    char *text = malloc(strlen(middle) + 100);

    sprintf(text, "{\nn\nMemcheck:Cond\n%sfun:f\n}\n", middle);
    CHECK(accepted_in_time(text, strlen(text), 1));
    free(text);
    free(middle);
}

TEST(a_line_of_a_megabyte_is_refused_unless_it_is_a_remark)
{
    size_t size = 1 << 20;
    char *text = malloc(size);

    memset(text, 'x', size);
    CHECK(!accepted_in_time(text, size, 0));
    memcpy(text, "#", 1);
    CHECK(accepted_in_time(text, size, 0));
    memcpy(text, "{\nn\nMemcheck:Cond\nfun:", 22);
    CHECK(!accepted_in_time(text, size, 0));
    memset(text, '\0', size);
    CHECK(!accepted_in_time(text, size, 0));
    memset(text, '{', size);
    CHECK(!accepted_in_time(text, size, 0));
    memset(text, '\n', size);
    CHECK(accepted_in_time(text, size, 0));
    free(text);
}

TEST(a_tool_list_of_many_tools_is_read)
{
    char *tools = repeat("A,", 40000);
    char *text = malloc(strlen(tools) + 100);

    sprintf(text, "{\nn\n%sMemcheck:Cond\nfun:malloc\n}\n", tools);
    CHECK(accepted_in_time(text, strlen(text), 1));
    free(text);
    free(tools);
}
