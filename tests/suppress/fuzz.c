// SPDX-License-Identifier: MIT
//
// Breaks suppression files and stacks in every way, under sanitizers: whatever happens,
// parsing ends with an answer, an error names its file, matching ends, and the lists
// can be written. The seeds are the files named; the same arguments give the same run.
//
//     fuzz ROUNDS FILE...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/suppress/suppress.h"

#define TEXT_MAX 20000
#define ENTRY    "\n{\nn\nMemcheck:Cond\n...\nfun:%s*\n...\nfun:%s\n}\n"

static u64 seed = 0x9e3779b97f4a7c15ull;
static char seeds[32][TEXT_MAX];
static size_t seed_sizes[32], seed_count;
static char text[TEXT_MAX * 2];
static size_t accepted, refused, matched;

static u64 random_below(u64 limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

static const char *const tokens[] = {
    "{\n", "}\n", "...\n", "fun:", "obj:", "src:", "*", "?", "\r\n", "\n", "#", "\t", ":", ",",
    "Memcheck:Leak\n", "Memcheck:Param\n", "Memcheck,Helgrind:Cond\n", "match-leak-kinds: ", "all",
    "definite,", "none", "@@V", "::h0123456789abcdef", "_ZN1a17h0123456789abcdefE", ".llvm.1",
    "<", ">", "(", ")", "operator", " ", "\xef\xbb\xbf", "99999999999", "CoreError:X\n", "n\n", "",
};

// A few whole entries of a seed, or any piece of it.
static size_t take_piece(void)
{
    size_t from = random_below(seed_count), start = random_below(seed_sizes[from] + 1);
    size_t size = random_below(seed_sizes[from] - start + 1);

    if (size > 2000)
        size = 2000;
    if (random_below(4)) {
        const char *first = memmem(seeds[from] + start, size, "\n{", 2);
        const char *last = first ? memrchr(first, '}', size - (size_t)(first - seeds[from] - start))
                                 : NULL;

        start = last ? (size_t)(first - seeds[from]) : start;
        size = last ? (size_t)(last + 1 - first) : 0;
    }
    memcpy(text, seeds[from] + start, size);
    return size;
}

// A piece of a seed, with some of its bytes and pieces replaced.
static size_t make_text(void)
{
    size_t size = take_piece();

    for (u64 i = random_below(2) ? random_below(12) : 0; i > 0 && size < TEXT_MAX; i--) {
        const char *token = tokens[random_below(sizeof(tokens) / sizeof(tokens[0]))];
        size_t token_size = strlen(token), at = random_below(size + 1);

        switch (random_below(3)) {
        case 0: // a byte
            if (at < size)
                text[at] = (char)random_below(256);
            break;
        case 1: // a token more
            memmove(text + at + token_size, text + at, size - at);
            memcpy(text + at, token, token_size);
            size += token_size;
            break;
        case 2: // a piece less
            memmove(text + at, text + at + (size - at) / 8, size - at - (size - at) / 8);
            size -= (size - at) / 8;
            break;
        }
    }
    if (random_below(2)) { // an entry that is well formed, if all before it is
        const char *token = tokens[random_below(sizeof(tokens) / sizeof(tokens[0]))];

        size += (size_t)sprintf(text + size, ENTRY, token, random_below(2) ? token : "f");
    }
    return size;
}

// A name from the tokens, or any text up to a NUL that happens to be in the file.
static char *random_text(size_t size)
{
    if (random_below(2))
        return strdup(random_below(3) ? tokens[random_below(sizeof(tokens) / sizeof(tokens[0]))]
                                      : "f");
    size_t at = random_below(size + 1), length = random_below(60);

    return random_below(3) ? strndup(text + at, at + length < size ? length : size - at) : NULL;
}

static void question(SuppressSet *set, size_t size)
{
    static const char *const kinds[] = { "Cond", "Leak", "Param", "Addr4", "Free" };
    Frame frames[8] = { 0 };
    SuppressQuery query = { .tool = "Memcheck", .frames = frames, .count = random_below(9) };

    query.kind = kinds[random_below(2) * random_below(5)];
    if (strcmp(query.kind, "Leak") == 0)
        query.leak_kind = "definite";
    if (strcmp(query.kind, "Param") == 0)
        query.extra = "write(buf)";
    for (size_t i = 0; i < query.count; i++) {
        frames[i].function = random_text(size);
        frames[i].mangled = random_text(size);
        frames[i].object = random_text(size);
        frames[i].directory = random_text(size);
        frames[i].file = random_text(size);
    }
    Suppression *found = suppress_match(set, &query);
    if (found) {
        found->used++;
        matched++;
    }
    FILE *nowhere = fopen("/dev/null", "w");
    suppress_generate(&query, nowhere);
    for (int list = SUPPRESS_LIST_USED; list <= SUPPRESS_LIST_JSON; list++)
        suppress_write_list(set, (SuppressList)list, "", nowhere);
    fclose(nowhere);
    for (size_t i = 0; i < query.count; i++) {
        free((char *)frames[i].function);
        free((char *)frames[i].mangled);
        free((char *)frames[i].object);
        free((char *)frames[i].directory);
        free((char *)frames[i].file);
    }
}

static void round_of_fuzzing(void)
{
    SuppressSet *set = suppress_new();
    const char *error = NULL;
    size_t size = make_text();
    // A copy of exactly this size, so that a byte too far is seen.
    char *exact = malloc(size ? size : 1);

    memcpy(exact, text, size);
    if (suppress_parse(set, "fuzz", exact, size, &error)) {
        accepted++;
    } else {
        refused++;
        if (!error || strncmp(error, "fuzz:", 5) != 0 || suppress_count(set) != 0)
            abort();
    }
    free(exact);
    question(set, size);
    suppress_free(set);
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc && seed_count < 32; i++) {
        FILE *file = fopen(argv[i], "r");

        if (file) {
            seed_sizes[seed_count] = fread(seeds[seed_count], 1, TEXT_MAX, file);
            seed_count++;
            fclose(file);
        }
    }
    if (!seed_count)
        return 2;
    for (long rounds = atol(argv[1]); rounds > 0; rounds--)
        round_of_fuzzing();
    printf("accepted %zu, refused %zu, matched %zu\n", accepted, refused, matched);
    return 0;
}
