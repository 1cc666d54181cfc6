// SPDX-License-Identifier: MIT
//
// The names by which a function may be called in a pattern, and the entries
// that are generated: readable, stable across builds, and true to their query.
#include <stdlib.h>

#include "../unit.h"
#include "monitor/suppress/suppress.h"

#define HASH     "17h0123456789abcdefE"
#define OLD_HASH "17hfedcba9876543210E"

typedef struct NameCase {
    const char *mangled, *function, *pattern;
    bool matches;
} NameCase;

static const NameCase name_cases[] = {
    // C: versions and clones
    { "call_init.part.0", "call_init", "call_init.part.0", true },
    { "call_init.part.0", "call_init", "call_init", true },
    { "call_init.part.0", NULL, "call_init", true },
    { "f.constprop.0.isra.12", NULL, "f", true },
    { "main.main", "main.main", "main", false },
    { "dlopen@@GLIBC_2.34", "dlopen@@GLIBC_2.34", "dlopen", true },
    { "dlopen@@GLIBC_2.34", "dlopen", "dlopen@@GLIBC_2.34", true },
    { "dlopen@@GLIBC_2.34", "dlopen", "dlopen@@GLIBC_2.2.5", false },
    { "dlopen", "dlopen", "dlopen@@GLIBC_2.2.5", true },
    { "dlopen", "dlopen", "dl*@@GLIBC_2.2.5", true },
    { "dlopen", "dlopen", "dlsym@@GLIBC_2.2.5", false },
    { "__libc_start_main@@GLIBC_2.34", NULL, "(below main)", true },
    { "__libc_start_call_main", NULL, "(below main)", true },
    { "main", "main", "(below main)", false },
    // C++
    { "_ZN3foo3barEi", "foo::bar(int)", "_ZN3foo3barEi", true },
    { "_ZN3foo3barEi", "foo::bar(int)", "_ZN3foo*", true },
    { "_ZN3foo3barEi", "foo::bar(int)", "foo::bar(int)", true },
    { "_ZN3foo3barEi", "foo::bar(int)", "foo::bar", true },
    { "_ZN3foo3barEi", "foo::bar(int)", "foo::*", true },
    { "_ZN3foo3barEi", "foo::bar(int)", "bar", false },
    { "_ZN3foo3barEi", "foo::bar(int)", "foo::bar(char)", false },
    { "_ZNK1A1fEv", "A::f() const", "A::f", true },
    { "_ZNK1A1fEv", "A::f() const &", "A::f", true },
    { "_Z1fIiEvT_", "void f<int>(int)", "f", true },
    { "_Z1fIiEvT_", "void f<int>(int)", "f<int>", true },
    { "_Z1fIiEvT_", "void f<int>(int)", "void f<int>(int)", true },
    { "_Z1x", "std::vector<int, std::allocator<int> > f<int>(std::map<int, int>)", "f", true },
    { "_Z1x", "std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back",
      true },
    { "_Z1x", "std::vector<int, std::allocator<int> >::push_back(int&&)",
      "std::vector<*>::push_back", true },
    { "_Znwm", "operator new(unsigned long)", "operator new", true },
    { "_Znam", "operator new[](unsigned long)", "operator new[]", true },
    { "_Znam", "operator new[](unsigned long)", "_Zna*", true },
    { "_Z1x", "bool operator< <int>(A<int> const&, A<int> const&)", "operator<", false },
    { "_Z1x", "bool operator< <int>(A<int> const&, A<int> const&)", "operator< <int>", true },
    { "_Z1x", "A::operator<<(int)", "A::operator<<", true },
    { "_Z1x", "A::operator()(int) const", "A::operator()", true },
    { "_Z1x", "A::operator()", "A::operator()", true },
    { "_Z1x", "A::operator->()", "A::operator->", true },
    { "_Z1x", "A<int>::operator bool() const", "A::operator bool", true },
    { "_Z1x", "f(int)::{lambda(int)#1}::operator()(int) const",
      "f(int)::{lambda(int)#1}::operator()", true },
    { "_Z1x", "(anonymous namespace)::f(int)", "(anonymous namespace)::f", true },
    { "_Z1x", "non-virtual thunk to A::f()", "A::f", true },
    { "_Z1f.part.0", "f() [clone .part.0]", "f", true },
    // Rust, legacy: with the hash, without, and with that of another build
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "influxdb_iox::main", true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "influxdb_iox::main::h0123456789abcdef",
      true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "influxdb_iox::main::hfedcba9876543210",
      true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "influxdb_iox::main::h*", true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "_ZN12influxdb_iox4main" HASH, true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "_ZN12influxdb_iox4main" OLD_HASH,
      true },
    { "_ZN12influxdb_iox4main" HASH, "influxdb_iox::main", "_ZN12influxdb_iox5other" HASH, false },
    { "_ZN1a1b" HASH, "a::b", "*1b" OLD_HASH, true },
    { "_ZN1a1b" HASH ".llvm.123", "a::b", "_ZN1a1b" OLD_HASH ".llvm.456", true },
    { "_ZN1a1b" HASH ".llvm.123", "a::b", "_ZN1a1b" HASH, true },
    { "_ZN1a1b" HASH, "a::b", "_ZN1a1b" OLD_HASH ".llvm.456", true },
    { "_ZN1a1b" HASH, "a::b::h0123456789abcdef", "a::b", true },
    // Rust, v0
    { "_RNvCs1_1a4main", "a::main", "a::main", true },
    { "_RINvCs1_1a1fmEB2_", "a::f::<u32>", "a::f", true },
    { "_RINvCs1_1a1fmEB2_", "a::f::<u32>", "a::f::<*>", true },
    { "_RX", "<alloc::vec::Vec<u8> as core::fmt::Debug>::fmt",
      "<alloc::vec::Vec<u8> as core::fmt::Debug>::fmt", true },
    { "_RX", "<fn(u8) -> u8 as a::T>::f", "<fn(u8) -> u8 as a::T>::f", true },
    // an inlined function has no mangled name
    { NULL, "inl", "inl", true },
    { NULL, NULL, "???", true },
    { "", "", "???", true },
};

static bool frames_match(const Frame *frames, size_t count, const char *text)
{
    SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, frames, count };
    SuppressSet *set = suppress_new();
    const char *error = NULL;

    if (!suppress_parse(set, "t", text, strlen(text), &error))
        FAIL("refused: %s\n%s", error, text);
    bool matched = suppress_match(set, &query) != NULL;
    suppress_free(set);
    return matched;
}

TEST(a_function_answers_to_all_its_names)
{
    for (size_t i = 0; i < ARRAY_LEN(name_cases); i++) {
        const NameCase *each = &name_cases[i];
        Frame frame = { .mangled = each->mangled, .function = each->function };
        char text[400];

        snprintf(text, sizeof(text), "{\nn\nMemcheck:Cond\nfun:%s\n}\n", each->pattern);
        if (frames_match(&frame, 1, text) != each->matches)
            FAIL("%s, %s: pattern %s should %s", each->mangled, each->function, each->pattern,
                 each->matches ? "match" : "not match");
    }
}

// ------------------------------------------------------------------- generation

static char *generate(const SuppressQuery *query)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    suppress_generate(query, out);
    fclose(out);
    return text;
}

static void check_generated(const SuppressQuery *query, const char *wanted)
{
    char *text = generate(query);

    CHECK_STR(text, wanted);
    free(text);
}

#define OWN  .object = "/home/me/prog"
#define LIBC .object = "/usr/lib/x86_64-linux-gnu/libc.so.6"
#define GLIB .object = "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0.7400.6"

TEST(a_short_stack_is_written_as_the_incumbent_does)
{
    static const Frame frames[] = {
        { .function = "inl", OWN, .inlined = true },
        { .function = "cond", .mangled = "cond", OWN },
        { .function = "main", .mangled = "main", OWN },
        { .function = "__libc_start_call_main", .mangled = "__libc_start_call_main", LIBC },
        { .function = "__libc_start_main", .mangled = "__libc_start_main@@GLIBC_2.34", LIBC },
        { .function = "_start", .mangled = "_start", OWN },
    };
    SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Cond\n   fun:inl\n"
                            "   fun:cond\n   fun:main\n}\n");
}

TEST(extra_lines_are_written)
{
    static const Frame frames[] = { { .function = "write", LIBC }, { .function = "main", OWN } };
    SuppressQuery query = { "Memcheck", "Param", "write(buf)", NULL, frames, 2 };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Param\n"
                            "   write(buf)\n   fun:write\n   fun:main\n}\n");
    query.extra = NULL;
    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Param\n"
                            "   *\n   fun:write\n   fun:main\n}\n");
    query.kind = "Leak";
    query.extra = "not a line of this kind";
    query.leak_kind = "possible";
    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n"
                            "   match-leak-kinds: possible\n   fun:write\n   fun:main\n}\n");
}

TEST(the_inside_of_libraries_becomes_dots_but_their_entry_stays)
{
    static const Frame frames[] = {
        { .function = "malloc", LIBC },     { .function = "g_malloc", GLIB },
        { .function = "secret_one", GLIB }, { .function = "g_key_file_load", GLIB },
        { .function = "read_it", OWN },     { .function = "g_list_foreach", GLIB },
        { .function = "main", OWN },        { .function = "_start", OWN },
    };
    SuppressQuery query = { "Memcheck", "Leak", NULL, "definite", frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n"
                            "   match-leak-kinds: definite\n   fun:malloc\n   ...\n"
                            "   fun:g_key_file_load\n   fun:read_it\n   ...\n"
                            "   fun:main\n}\n");
}

TEST(the_standard_library_of_rust_becomes_dots)
{
    static const Frame frames[] = {
        { .function = "malloc", LIBC },
        { .function = "alloc::alloc::alloc", .mangled = "_ZN5alloc5alloc5alloc" HASH, OWN },
        { .function = "<alloc::vec::Vec<T> as core::clone::Clone>::clone", .mangled = "_Zx", OWN },
        { .function = "app::config::load::<app::A>", .mangled = "_RINv", OWN },
        { .function = "core::ops::function::FnOnce::call_once", .mangled = "_Zx", OWN },
        { .function = "app::main", .mangled = "_ZN3app4main" HASH, OWN },
        { .function = "std::rt::lang_start", .mangled = "_Zx", OWN },
        { .function = "main", .mangled = "main", OWN },
    };
    SuppressQuery query = { "Memcheck", "Leak", NULL, "definite", frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n"
                            "   match-leak-kinds: definite\n   fun:malloc\n   ...\n"
                            "   fun:<alloc::vec::Vec<*> as core::clone::Clone>::clone\n"
                            "   fun:app::config::load::<*>\n   ...\n   fun:app::main\n   ...\n"
                            "   fun:main\n}\n");
}

TEST(an_entry_does_not_cover_the_rest_of_the_program)
{
    // The second time as in a static program, which has its own operator new.
    for (int is_static = 0; is_static < 2; is_static++) {
        const char *top = is_static ? "/home/me/prog" : "/usr/lib/libstdc++.so.6";
        const Frame known[] = {
            { .function = "operator new(unsigned long)", .object = top },
            { .function = "std::allocator<int>::allocate(unsigned long)", OWN },
            { .function = "std::vector<int>::vector(unsigned long)", OWN },
            { .function = "main", OWN },
        };
        const Frame other[] = {
            { .function = "operator new(unsigned long)", .object = top },
            { .function = "forgetful()", OWN },
            { .function = "main", OWN },
        };
        SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, known, ARRAY_LEN(known) };
        char *text = generate(&query);

        CHECK(frames_match(known, ARRAY_LEN(known), text));
        CHECK(!frames_match(other, ARRAY_LEN(other), text));
        free(text);
    }
}

TEST(parameters_and_template_arguments_are_left_out)
{
    static const Frame frames[] = {
        { .function = "operator new(unsigned long)", .mangled = "_Znwm", LIBC },
        { .function = "void A<int, B<char> >::f<C>(int, char const*) const", .mangled = "_ZA",
          OWN },
        { .function = "A::operator<<(int)", .mangled = "_ZA", OWN },
    };
    SuppressQuery query = { "Memcheck", "Free", NULL, NULL, frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Free\n"
                            "   fun:operator new\n   fun:A<*>::f<*>\n   fun:A::operator<<\n}\n");
}

TEST(functions_without_a_name_are_written_by_object)
{
    static const Frame frames[] = {
        { .object = "/usr/lib/x86_64-linux-gnu/libfoo.so.1.2.3" },
        { .object = "/home/me/prog" },
        { .object = NULL },
        { .function = "work", OWN },
    };
    SuppressQuery query = { "Memcheck", "Addr4", NULL, NULL, frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Addr4\n"
                            "   obj:*/libfoo.so*\n   obj:*/prog\n   obj:*\n   fun:work\n}\n");
}

TEST(a_stack_of_libraries_only_keeps_its_top)
{
    static const Frame frames[] = {
        { .function = "a", LIBC }, { .function = "b", LIBC }, { .function = "c", LIBC },
        { .function = "d", LIBC }, { .function = "e", LIBC }, { .function = "clone", LIBC },
    };
    SuppressQuery query = { "Memcheck", "Addr4", NULL, NULL, frames, ARRAY_LEN(frames) };

    check_generated(&query, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Addr4\n"
                            "   fun:a\n   fun:b\n   fun:c\n   fun:d\n}\n");
    query.count = 0;
    check_generated(&query, "");
}

// ---------------------------------------------------------- the promise of generation

static u64 seed = 88172645463325252ull;

static u64 random_below(u64 limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

// Names made of the pieces that make names difficult, and of any byte.
static const char *random_name(void)
{
    static const char *const pieces[] = {
        "foo", "::", "<", ">", "(", ")", "operator", "()", " const", " ", "*", "?", "@@V_1", "@",
        ".part.0", ".llvm.12", "::h0123456789abcdef", "_ZN", HASH, "std::", "{lambda(int)#1}", "&",
        "...", "}", "#", "[clone .x]", " as core::", "->", "<<", "main", "\n", "\r", "\t", "\x01",
        "\xff", "void ", "new", "[]", ",", "~", "fun:", "{", "???", "",
    };
    static char pool[64][256];
    static size_t next;
    char *name = pool[next++ % 64];
    size_t size = 0;

    for (u64 i = random_below(8); i > 0; i--) {
        const char *piece = pieces[random_below(ARRAY_LEN(pieces))];

        memcpy(name + size, piece, strlen(piece));
        size += strlen(piece);
    }
    name[size] = '\0';
    return name;
}

static Frame random_frame(void)
{
    static const char *const objects[] = {
        NULL, "/home/me/prog", "/usr/lib/libx.so.1", "/opt/a b/liby.so", "relative", "", "/",
        "[vdso]", "/home/me/odd\nname*", "/x/trailing ",
    };
    Frame frame = { .object = objects[random_below(ARRAY_LEN(objects))] };

    if (random_below(4))
        frame.function = random_below(3) ? random_name() : "main";
    if (random_below(3))
        frame.mangled = random_below(2) ? random_name() : frame.function;
    return frame;
}

TEST(what_is_generated_matches_what_it_was_made_from)
{
    static const char *const params[] = {
        "write(buf)", "ioctl(TCSET{S,SW})", "odd\nparameter ", NULL, "",
    };

    for (int round = 0; round < 20000; round++) {
        Frame frames[30];
        SuppressQuery query = { "Memcheck", "Cond", NULL, NULL, frames, 1 + random_below(30) };

        for (size_t i = 0; i < query.count; i++)
            frames[i] = random_frame();
        if (random_below(4) == 0) {
            query.kind = "Leak";
            query.leak_kind = "possible";
        } else if (random_below(4) == 0) {
            query.kind = "Param";
            query.extra = params[random_below(ARRAY_LEN(params))];
        }
        char *text = generate(&query);
        SuppressSet *set = suppress_new();
        const char *error = NULL;
        if (!suppress_parse(set, "generated", text, strlen(text), &error))
            FAIL("%s\n%s", error, text);
        if (!suppress_match(set, &query))
            FAIL("does not match: %s (first frame %s, %s)", text, frames[0].mangled,
                 frames[0].function);
        CHECK_EQ(suppress_count(set), 1);
        suppress_free(set);
        free(text);
    }
}
