// SPDX-License-Identifier: MIT
//
// The grammar of suppression files, rule by rule: what is accepted and what it
// then means, and for each mistake the line and the words of the error.
#include <stdlib.h>

#include "../unit.h"
#include "monitor/report/report.h"
#include "monitor/suppress/suppress.h"

static const Frame stack[] = {
    { .function = "inner", .mangled = "inner", .object = "/opt/prog/bin/prog",
      .directory = "/home/me/src", .file = "a.c", .line = 5, .inlined = true },
    { .function = "cond", .mangled = "cond", .object = "/opt/prog/bin/prog",
      .directory = "/home/me/src", .file = "a.c", .line = 9 },
    { .function = NULL, .object = "/usr/lib/x86_64-linux-gnu/libfoo.so.1" },
    { .function = NULL, .object = NULL },
    { .function = "main", .mangled = "main", .object = "/opt/prog/bin/prog",
      .directory = "/home/me/src", .file = "main.c", .line = 100 },
};

static SuppressQuery query_of(const char *kind)
{
    return (SuppressQuery){ .tool = "Memcheck", .kind = kind, .frames = stack,
                            .count = ARRAY_LEN(stack) };
}

// Whether the query is suppressed by the text, which must be accepted.
static bool matches_query(const char *text, const SuppressQuery *query)
{
    SuppressSet *set = suppress_new();
    const char *error = NULL;

    if (!suppress_parse(set, "t.supp", text, strlen(text), &error))
        FAIL("refused: %s", error);
    bool matched = suppress_match(set, query) != NULL;
    suppress_free(set);
    return matched;
}

static bool matches(const char *text)
{
    SuppressQuery query = query_of("Cond");

    return matches_query(text, &query);
}

// An entry for Memcheck:Cond with this body.
static bool body_matches(const char *body)
{
    char text[4096];

    snprintf(text, sizeof(text), "{\n n\n Memcheck:Cond\n%s\n}\n", body);
    return matches(text);
}

static void check_error_of(const char *text, size_t size, const char *wanted)
{
    SuppressSet *set = suppress_new();
    const char *error = NULL;

    if (suppress_parse(set, "t.supp", text, size, &error))
        FAIL("accepted: %s", text);
    CHECK(error);
    if (strncmp(error, wanted, strlen(wanted)) != 0)
        FAIL("the error is \"%s\", not \"%s\"", error, wanted);
    CHECK_EQ(suppress_count(set), 0);
    suppress_free(set);
}

static void check_error(const char *text, const char *wanted)
{
    check_error_of(text, strlen(text), wanted);
}

#define GOOD "{\n n\n Memcheck:Cond\n fun:inner\n fun:cond\n}\n"

TEST(a_plain_entry_matches)
{
    CHECK(matches(GOOD));
    CHECK(!matches("{\n n\n Memcheck:Cond\n fun:cond\n}\n"));
}

TEST(an_empty_file_is_a_file_without_entries)
{
    CHECK(!matches(""));
    CHECK(!matches("\n\n  \n# only a remark"));
}

TEST(line_ends_may_be_those_of_windows)
{
    CHECK(matches("{\r\n n\r\n Memcheck:Cond\r\n fun:inner\r\n fun:cond\r\n}\r\n"));
}

TEST(a_byte_order_mark_is_skipped)
{
    CHECK(matches("\xef\xbb\xbf" GOOD));
}

TEST(the_last_line_needs_no_end)
{
    CHECK(matches("{\n n\n Memcheck:Cond\n fun:inner\n}"));
}

TEST(tabs_and_trailing_blanks_do_not_count)
{
    CHECK(matches("\t{ \n\tn\t\n\t\tMemcheck:Cond \t\n\tfun:inner  \n fun:cond\t\n  }  \n"));
}

TEST(remarks_and_blank_lines_may_be_anywhere)
{
    CHECK(matches("# a\n{\n# b\n\n n\n  # c\n Memcheck:Cond\n#d\n fun:inner\n\n fun:cond\n"
                  "#e\n}\n#"));
    CHECK(!matches("{\n n\n Memcheck:Cond\n fun:inner # not a remark\n}\n"));
}

TEST(names_and_lines_are_remembered)
{
    static const char text[] = "\n{\n # c\n the name {of} it\n\n Memcheck:Cond\n fun:f\n}\n" GOOD;
    SuppressSet *set = suppress_new();
    const char *error;

    CHECK(suppress_parse(set, "dir/t.supp", text, strlen(text), &error));
    CHECK_EQ(suppress_count(set), 2);
    CHECK_STR(suppress_at(set, 0)->name, "the name {of} it");
    CHECK_STR(suppress_at(set, 0)->file, "dir/t.supp");
    CHECK_EQ(suppress_at(set, 0)->line, 4);
    CHECK_EQ(suppress_at(set, 1)->line, 10);
    SuppressQuery query = query_of("Cond");
    CHECK(suppress_match(set, &query) == suppress_at(set, 1));
    suppress_free(set);
}

TEST(the_first_entry_that_matches_is_the_one)
{
    SuppressSet *set = suppress_new();
    SuppressQuery query = query_of("Cond");
    const char *error;

    CHECK(suppress_parse(set, "1", GOOD, strlen(GOOD), &error));
    const Suppression *first = suppress_match(set, &query);
    CHECK_STR(first->file, "1");
    CHECK(suppress_parse(set, "2", GOOD GOOD, 2 * strlen(GOOD), &error));
    CHECK(suppress_match(set, &query) == first);
    CHECK_EQ(suppress_count(set), 3);
    suppress_free(set);
}

TEST(a_bad_file_leaves_the_set_as_it_was)
{
    SuppressSet *set = suppress_new();
    SuppressQuery query = query_of("Cond");
    const char *error = NULL;

    CHECK(!suppress_parse(set, "1", GOOD "bad", strlen(GOOD "bad"), &error));
    CHECK_STR(error, "1:7: expected '{' alone on a line, found 'bad'");
    CHECK_EQ(suppress_count(set), 0);
    CHECK(!suppress_match(set, &query));
    suppress_free(set);
}

TEST(tool_lists_name_several_tools)
{
    CHECK(matches("{\n n\n Memcheck,Helgrind:Cond\n fun:inner\n}\n"));
    CHECK(matches("{\n n\n Helgrind,Memcheck:Cond\n fun:inner\n}\n"));
    CHECK(matches("{\n n\n Helgrind, Memcheck , drd:Cond\n fun:inner\n}\n"));
    CHECK(matches("{\n n\n ,Memcheck,:Cond\n fun:inner\n}\n"));
    CHECK(matches("{\n n\n CoreError,Memcheck:Cond\n fun:inner\n}\n"));
    CHECK(!matches("{\n n\n :Cond\n fun:inner\n}\n"));
    CHECK(!matches("{\n n\n Helgrind:Cond\n fun:inner\n}\n"));
}

TEST(case_does_not_count_in_a_tool)
{
    SuppressQuery query = query_of("ConflictingAccess");

    CHECK(matches("{\n n\n memcheck:Cond\n fun:inner\n}\n"));
    query.tool = "DRD";
    CHECK(matches_query("{\n n\n drd:ConflictingAccess\n fun:inner\n}\n", &query));
}

TEST(entries_for_other_tools_may_hold_anything)
{
    CHECK(matches("{\n n\n Foo:bar\n what ever\n {\n x:y\n}\n" GOOD));
    CHECK(matches("{\n n\n Helgrind:Race\n}\n" GOOD));
    CHECK(matches("{\n n\n Helgrind:\n ...\n}\n" GOOD));
    CHECK(matches("{\n n\n drd:X\n match-leak-kinds: none\n fun:f\n}\n" GOOD));
    CHECK(matches("{\n n\n Memcheck,Helgrind:Race\n fun:f\n}\n" GOOD));
}

TEST(entries_of_other_tools_match_those_tools)
{
    SuppressQuery query = query_of("Race");

    query.tool = "Helgrind";
    CHECK(matches_query("{\n n\n Helgrind:Race\n fun:inner\n}\n", &query));
    CHECK(!matches_query("{\n n\n Helgrind:Race\n odd line\n fun:inner\n}\n", &query));
    query.tool = "CoreError";
    query.kind = "FdBadClose";
    CHECK(matches_query("{\n n\n CoreError:FdBadClose\n fun:inner\n}\n", &query));
}

TEST(every_kind_of_memcheck_is_known)
{
    static const char *const kinds[] = {
#define KIND(name, canonical) name,
#include "monitor/suppress/kinds.def"
#undef KIND
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        SuppressQuery query = query_of(kinds[i]);
        char text[200];

        query.extra = "write(buf)";
        snprintf(text, sizeof(text), "{\n n\n Memcheck:%s\n%s fun:inner\n}\n", kinds[i],
                 strcmp(kinds[i], "Param") == 0 ? " write(buf)\n" : "");
        CHECK(matches_query(text, &query));
        query.kind = "Other";
        CHECK(!matches_query(text, &query));
    }
}

// What findings.def makes, --gen-suppressions writes, and a file that has it must be accepted.
TEST(every_kind_that_a_finding_can_have_is_known)
{
    static const u64 sizes[] = { 1, 2, 4, 8, 16, 32, 64 };

    for (u32 i = 0; i < KIND_COUNT * ARRAY_LEN(sizes); i++) {
        const KindDescription *kind = kind_in_table(i / ARRAY_LEN(sizes));
        AnyFields fields = { .value = { .size = sizes[i % ARRAY_LEN(sizes)] } };
        FieldValues values = fields_of(SHAPE_VALUE, fields);
        char name[64], text[200];

        report_words(kind->suppression, &values, name, sizeof(name));
        SuppressQuery query = query_of(name);
        query.tool = kind->family;
        query.extra = kind->suppression_extra ? "write(buf)" : NULL;
        query.leak_kind = kind->leak_kind;
        snprintf(text, sizeof(text), "{\n n\n %s:%s\n%s fun:inner\n}\n", query.tool, name,
                 query.extra ? " write(buf)\n" : "");
        CHECK(matches_query(text, &query));
    }
}

TEST(value0_is_the_old_name_of_cond)
{
    CHECK(matches("{\n n\n Memcheck:Value0\n fun:inner\n}\n"));
}

TEST(param_lines_name_the_parameter)
{
    SuppressQuery query = query_of("Param");
    static const struct {
        const char *line;
        bool matches;
    } cases[] = {
        { "write(buf)", true }, { "write(buf) \t", true },    { "write", false },
        { "write(*)", true },   { "writev(vector)", false }, { "*", true },
    };

    query.extra = "write(buf)";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200];

        snprintf(text, sizeof(text), "{\n n\n Memcheck:Param\n %s\n fun:inner\n}\n", cases[i].line);
        CHECK_EQ(matches_query(text, &query), cases[i].matches);
    }
}

TEST(leak_kinds_are_a_set)
{
    static const struct {
        const char *line;
        bool definite, reachable;
    } cases[] = {
        { "", true, true },
        { "match-leak-kinds: definite\n", true, false },
        { "match-leak-kinds:definite\n", true, false },
        { "match-leak-kinds:\treachable\n", false, true },
        { "match-leak-kinds: all\n", true, true },
        { "match-leak-kinds: none\n", false, false },
        { "match-leak-kinds: definite,reachable\n", true, true },
        { "match-leak-kinds: possible, reachable\n", false, true },
        { "match-leak-kinds: indirect,possible\n", false, false },
        { "match-leak-kinds: definite,\n", true, false },
        { "match-leak-kinds: definite,definite\n", true, false },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SuppressQuery query = query_of("Leak");
        char text[200];

        snprintf(text, sizeof(text), "{\nn\nMemcheck:Leak\n%s fun:inner\n}\n", cases[i].line);
        query.leak_kind = "definite";
        CHECK_EQ(matches_query(text, &query), cases[i].definite);
        query.leak_kind = "reachable";
        CHECK_EQ(matches_query(text, &query), cases[i].reachable);
    }
}

TEST(stars_and_question_marks_match_characters)
{
    CHECK(body_matches("fun:in*"));
    CHECK(body_matches("fun:*"));
    CHECK(body_matches("fun:*n*e*"));
    CHECK(body_matches("fun:i?ner"));
    CHECK(body_matches("fun:?????"));
    CHECK(body_matches("fun:inner*"));
    CHECK(!body_matches("fun:??????"));
    CHECK(!body_matches("fun:nner"));
    CHECK(!body_matches("fun:inne"));
    CHECK(!body_matches("fun:[i]nner"));
    CHECK(!body_matches("fun: inner"));
    CHECK(!body_matches("fun:"));
}

TEST(three_dots_match_any_number_of_frames)
{
    CHECK(body_matches("...\nfun:inner"));
    CHECK(body_matches("...\nfun:main"));
    CHECK(body_matches("fun:inner\n...\nfun:main"));
    CHECK(body_matches("fun:inner\n...\nfun:cond\n...\nfun:main\n..."));
    CHECK(body_matches("...\n...\nfun:main\n...\n..."));
    CHECK(!body_matches("...\nfun:main\nfun:*"));
    CHECK(!body_matches("...\nfun:main\n...\nfun:inner"));
    CHECK(!body_matches("...\nfun:inner\nfun:main"));
    CHECK(body_matches("...\nobj:*\nobj:*\nobj:*\nobj:*\nobj:*"));
    CHECK(!body_matches("...\nobj:*\nobj:*\nobj:*\nobj:*\nobj:*\nobj:*"));
}

TEST(objects_match_by_path)
{
    CHECK(body_matches("obj:/opt/prog/bin/prog"));
    CHECK(body_matches("obj:*/prog\nobj:*/prog\nobj:*/libfoo.so*"));
    CHECK(!body_matches("obj:prog"));
    CHECK(!body_matches("obj:"));
}

TEST(lib_and_usr_lib_are_one_folder)
{
    CHECK(body_matches("...\nobj:/usr/lib/x86_64-linux-gnu/libfoo.so.1"));
    CHECK(body_matches("...\nobj:/lib/x86_64-linux-gnu/libfoo.so.1"));
    CHECK(body_matches("...\nobj:/lib*/libfoo*"));
    CHECK(!body_matches("...\nobj:/ib*/libfoo*"));
}

TEST(what_is_unknown_is_three_question_marks)
{
    CHECK(body_matches("fun:*\nfun:*\nfun:*\nobj:*\nfun:main"));
    CHECK(body_matches("fun:*\nfun:*\nfun:???\nobj:???\nfun:main"));
    CHECK(!body_matches("fun:*\nfun:*\nfun:*\nobj:\nfun:main"));
    CHECK(!body_matches("fun:*\nfun:*\nfun:*\nsrc:*\nfun:main"));
}

TEST(sources_match_by_file_and_line)
{
    CHECK(body_matches("src:a.c"));
    CHECK(body_matches("src:a.c:5"));
    CHECK(body_matches("src:*:5"));
    CHECK(body_matches("src:a.*:5\nsrc:a.c:9"));
    CHECK(body_matches("src:a.c:"));
    CHECK(body_matches("src:a.c:x"));
    CHECK(body_matches("src:a.c:0"));
    CHECK(body_matches("src:/home/me/src/a.c:5"));
    CHECK(body_matches("src:*/src/a.c"));
    CHECK(body_matches("src:src/a.c:5"));
    CHECK(body_matches("src:me/s?c/a.c"));
    CHECK(!body_matches("src:rc/a.c"));
    CHECK(!body_matches("src:a.c:6"));
    CHECK(!body_matches("src:a.c:55"));
    CHECK(!body_matches("src:a.c:99999999999999999999"));
    CHECK(!body_matches("src:b.c"));
    CHECK(!body_matches("src:"));
}

TEST(mistakes_are_told_with_their_line)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "foo\n", "t.supp:1: expected '{' alone on a line, found 'foo'" },
        { "\n#\n}\n", "t.supp:3: expected '{' alone on a line, found '}'" },
        { "{ n\n", "t.supp:1: expected '{' alone on a line, found '{ n'" },
        { GOOD "x", "t.supp:7: expected '{' alone on a line, found 'x'" },
        { "{\n", "t.supp:1: expected the name of a suppression, found the end of the file" },
        { "{\n}\n", "t.supp:2: expected the name of a suppression, found '}'" },
        { "{\nn\n", "t.supp:2: expected a line Tool1,Tool2:Kind, such as Memcheck:Cond, found the "
                    "end of the file" },
        { "{\nn\nMemcheck\n", "t.supp:3: expected a line Tool1,Tool2:Kind, such as Memcheck:Cond, "
                              "found 'Memcheck'" },
        { "{\nn\nMemcheck:Cnd\nfun:f\n}\n", "t.supp:3: expected a kind of Memcheck (Addr1, " },
        { "{\nn\nMemcheck:\nfun:f\n}\n", "t.supp:3: expected a kind of Memcheck (Addr1, Addr2," },
        { "{\nn\nMemcheck: Cond\nfun:f\n}\n", "t.supp:3: expected a kind of Memcheck (Addr1," },
        { "{\nn\nMemcheck:Param\nfun:f\n}\n", "t.supp:4: expected the parameter of a system call, "
                                              "such as write(buf), found 'fun:f'" },
        { "{\nn\nMemcheck:Param\n...\n}\n", "t.supp:4: expected the parameter of a system call" },
        { "{\nn\nMemcheck:Param\n}\n", "t.supp:4: expected the parameter of a system call" },
        { "{\nn\nMemcheck:Leak\nmatch-leak-kinds: bogus\nfun:f\n}\n",
          "t.supp:4: expected match-leak-kinds: with a list of definite, indirect, possible and "
          "reachable, or all, or none, found 'match-leak-kinds: bogus'" },
        { "{\nn\nMemcheck:Leak\nmatch-leak-kinds:\nfun:f\n}\n",
          "t.supp:4: expected leak kinds after match-leak-kinds:, found 'match-leak-kinds:'" },
        { "{\nn\nMemcheck:Leak\nmatch-leak-kinds: all\nmatch-leak-kinds: all\nfun:f\n}\n",
          "t.supp:5: expected fun:, obj:, src: or '...', found 'match-leak-kinds: all'" },
        { "{\nn\nMemcheck:Cond\nmatch-leak-kinds: all\nfun:f\n}\n",
          "t.supp:4: expected fun:, obj:, src: or '...', found 'match-leak-kinds: all'" },
        { "{\nn\nMemcheck:Cond\n}\n", "t.supp:4: expected fun:, obj:, src: or '...', found '}'" },
        { "{\nn\nMemcheck:Cond\n...\n...\n}\n",
          "t.supp:6: expected a location other than '...' (fun:, obj: or src:), found '}'" },
        { "{\nn\nMemcheck:Cond\nfun:f\nfunction:g\n}\n",
          "t.supp:5: expected fun:, obj:, src:, '...' or '}', found 'function:g'" },
        { "{\nn\nMemcheck:Cond\nFUN:f\n}\n", "t.supp:4: expected fun:, obj:, src: or '...'" },
        { "{\nn\nMemcheck:Cond\n....\n}\n", "t.supp:4: expected fun:, obj:, src: or '...'" },
        { "{\nn\nMemcheck:Cond\nfun:f\n} x\n",
          "t.supp:5: expected fun:, obj:, src:, '...' or '}', found '} x'" },
        { "{\nn\nMemcheck:Cond\nfun:f\n",
          "t.supp:4: expected fun:, obj:, src:, '...' or '}', found the end of the file" },
        { "{\nn\nFoo:Bar\nfun:f\n", "t.supp:4: expected '}', found the end of the file" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_error(cases[i].text, cases[i].error);
    check_error_of("{\nn\0m\n", 6, "t.supp:2: expected text, found a NUL byte");
}

TEST(what_is_found_is_shown_in_one_short_line)
{
    char text[3000];

    memset(text, 'x', sizeof(text));
    text[1] = '\x1b';
    text[sizeof(text) - 1] = '\0';
    check_error(text, "t.supp:1: expected '{' alone on a line, found 'x?xxx");
}

TEST(a_file_that_cannot_be_read_is_told_with_the_reason)
{
    SuppressSet *set = suppress_new();
    const char *error = NULL;

    CHECK(!suppress_load(set, "/nonexistent/x.supp", &error));
    CHECK_STR(error, "/nonexistent/x.supp: cannot read this suppression file: "
                     "No such file or directory");
    CHECK(!suppress_load(set, "/", &error));
    CHECK_STR(error, "/: cannot read this suppression file: Is a directory");
    CHECK(suppress_load(set, "/dev/null", &error));
    CHECK_EQ(suppress_count(set), 0);
    suppress_free(set);
}

TEST(lists_show_used_and_unused_entries)
{
    static const char text[] = "{\nfirst\nMemcheck:Cond\nfun:a\n}\n{\nse<c>\"o\\nd\nMemcheck:Leak\n"
                               "fun:b\n}\n{\nnever\xff\nMemcheck:Leak\nfun:b\n}\n";
    static const char *const wanted[] = {
        [SUPPRESS_LIST_USED] = "--7-- used_suppression:     12 se<c>\"o\\nd d/t.supp:7 suppressed: "
                               "1,012,400 bytes in 3 blocks\n"
                               "--7-- used_suppression:      2 first d/t.supp:2\n",
        [SUPPRESS_LIST_UNUSED] = "--7-- unused_suppression: never\xff d/t.supp:12\n",
        [SUPPRESS_LIST_XML] = "<suppcounts>\n  <pair>\n    <count>12</count>\n    "
                              "<name>se&lt;c&gt;\"o\\nd</name>\n  </pair>\n  <pair>\n    "
                              "<count>2</count>\n    <name>first</name>\n  </pair>\n"
                              "</suppcounts>\n",
        [SUPPRESS_LIST_JSON] =
            "[{\"name\":\"first\",\"file\":\"d/t.supp\",\"line\":2,\"used\":2,\"leaked_bytes\":0,"
            "\"leaked_blocks\":0},{\"name\":\"se<c>\\\"o\\\\nd\",\"file\":\"d/t.supp\",\"line\":7,"
            "\"used\":12,\"leaked_bytes\":1012400,\"leaked_blocks\":3},{\"name\":\"never?\","
            "\"file\":\"d/t.supp\",\"line\":12,\"used\":0,\"leaked_bytes\":0,\"leaked_blocks\":0}]",
    };
    static const Frame a = { .function = "a" }, b = { .function = "b" };
    SuppressQuery cond = { "Memcheck", "Cond", NULL, NULL, &a, 1 };
    SuppressQuery leak = { "Memcheck", "Leak", NULL, "definite", &b, 1 };
    SuppressSet *set = suppress_new();
    const char *error;

    CHECK(suppress_parse(set, "d/t.supp", text, strlen(text), &error));
    suppress_match(set, &cond)->used += 2;
    Suppression *second = suppress_match(set, &leak);
    second->used = 12;
    second->leaked_bytes = 1012400;
    second->leaked_blocks = 3;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        char *got = NULL;
        size_t size;
        FILE *out = open_memstream(&got, &size);

        suppress_write_list(set, (SuppressList)i, "--7-- ", out);
        fclose(out);
        CHECK_STR(got, wanted[i]);
        free(got);
    }
    suppress_free(set);
}
