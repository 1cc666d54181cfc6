// SPDX-License-Identifier: MIT
//
// Suppression files: read, matched with a stack, listed.
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "monitor/suppress/suppress.h"

static const Frame stack[] = {
    {.function = "inner", .mangled = "inner", .object = "/opt/bin/prog", .directory = "/src",
     .file = "a.c", .line = 5, .inlined = true},
    {.function = "n::f(int)", .mangled = "_ZN1n1fEi", .object = "/opt/bin/prog"},
    {.function = NULL, .object = "/usr/lib/libfoo.so.1"},
    {.function = "main", .mangled = "main", .object = "/opt/bin/prog", .file = "main.c"},
};

static void write_lists(const SuppressSet *set)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int list = SUPPRESS_LIST_USED; list <= SUPPRESS_LIST_JSON; list++)
        suppress_write_list(set, (SuppressList)list, "--1-- ", out);
    fclose(out);
    free(text);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static const char *const kinds[] = {"Cond", "Addr4", "Param", "Leak"};
    SuppressSet *set = suppress_new();
    const char *error = NULL;
    char *text = fuzz_text(data, size);

    bool good = suppress_parse(set, "fuzz.supp", text, size, &error);
    FUZZ_CHECK(good || error);
    for (size_t i = 0; good && i < ARRAY_LEN(kinds); i++) {
        SuppressQuery query = {.tool = "Memcheck", .kind = kinds[i], .extra = "write(buf)",
                               .leak_kind = i == 3 ? "definite" : NULL, .frames = stack,
                               .count = ARRAY_LEN(stack)};
        Suppression *found = suppress_match(set, &query);
        if (found)
            found->used++;
    }
    write_lists(set);
    suppress_free(set);
    free(text);
    return 0;
}
