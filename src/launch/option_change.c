// SPDX-License-Identifier: MIT
//
// Options that change while the program runs: CHANGEABLE rows of options_changeable.def, and every
// option without effect.
#include <errno.h>
#include <string.h>

#include "launch/option_table.h"

static const char *const changeable[] = {
#define CHANGEABLE(name) name,
#include "launch/options_changeable.def"
#undef CHANGEABLE
};

static const OptionRow *row_of(const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    size_t length = is_long ? strcspn(word + 2, "=") : 1;
    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        if (is_long ? strlen(row->name) == length && memcmp(row->name, word + 2, length) == 0
                    : row->letter && row->letter == word[1] && !word[2])
            return row;
    }
    return NULL;
}

bool option_is_changeable(const OptionRow *row)
{
    for (u32 i = 0; i < ARRAY_LEN(changeable); i++) {
        if (strcmp(changeable[i], row->name) == 0)
            return true;
    }
    return false;
}

static bool points_into_word(const OptionRow *row)
{
    switch (row->kind) {
    case OPTION_STRING: case OPTION_TEXT: case OPTION_OPTIONAL_STRING: case OPTION_SOCKET:
    case OPTION_RANGES: case OPTION_FALLING_RANGE: case OPTION_PATH: case OPTION_PATH_TEMPLATE:
    case OPTION_LIST: case OPTION_TEXT_LIST: case OPTION_PATH_LIST:
        return true;
    default:
        return false;
    }
}

int options_change(Options *options, char *word, bool *ret_keeps_word)
{
    static Options changed; // the caller's lock
    char *argv[] = {"", word, NULL};
    const OptionRow *row = word[0] == '-' && word[1] ? row_of(word) : NULL;

    if (!row) {
        option_fail(options, "there is no option %.100s", word);
        return -EINVAL;
    }
    if (row->kind != OPTION_IGNORED && row->kind != OPTION_REFUSED && !option_is_changeable(row)) {
        option_fail(options, "--%s cannot be changed while the program runs", row->name);
        return -EINVAL;
    }
    changed = *options;
    int parsed = options_parse(2, argv, &changed);
    if (parsed < 0) {
        memcpy(options->error, changed.error, sizeof(options->error));
        return -EINVAL;
    }
    *options = changed;
    *ret_keeps_word = points_into_word(row);
    return 0;
}
