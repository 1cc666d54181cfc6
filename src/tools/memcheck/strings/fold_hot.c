// SPDX-License-Identifier: MIT
//
// Letters without their case, as the client's locale has them. Most are the same in all locales;
// for the others glibc has a table, whose place is asked for once in a thread.
#include "tools/memcheck/strings/access.h"
#include "tools/memcheck/strings/call.h"
#include "tools/memcheck/strings/strings.h"

// In glibc's struct __locale_struct.
enum { LOCALE_LOWER = 112, TABLE_BYTES = 256 };

static u64 fold(u64 value)
{
    return value - 'A' < 26 ? value + 'a' - 'A' : value;
}

// The last function that was found to be glibc's is remembered by the thread.
static bool is_glibc(StringCall *s)
{
    MemcheckThread *mt = memcheck_thread(s->thread);
    GuestAddr entry = s->call->entry;
    if (mt->glibc_entry != entry && string_exported_by(entry, "gnu_get_libc_version"))
        mt->glibc_entry = entry;
    return mt->glibc_entry == entry;
}

// The word of the thread that points to the table: what __ctype_tolower_loc() returns.
static bool find_word(StringCall *s, GuestAddr *ret_word)
{
    MemcheckThread *mt = memcheck_thread(s->thread);
    if (!mt->letters) {
        if (s->thread->dispatch.in_cache) {
            // Nothing may have been done by then.
            s->call->needs_full = s->told == 0;
            return false;
        }
        GuestAddr function = string_exported_by(s->call->entry, "__ctype_tolower_loc");
        u64 word = 0;
        if (!function || !is_glibc(s) ||
            !tool_call_client(s->thread, function, NULL, 0, &word))
            return false;
        mt->letters = word;
    }
    *ret_word = mt->letters;
    return true;
}

static bool find_table(StringCall *s)
{
    GuestAddr word;
    if (s->letters)
        return true;
    if (s->data & STRING_LOCALE) {
        GuestAddr locale = s->call->args[s->data & STRING_LIMIT_2 ? 3 : 2];
        if (!is_glibc(s))
            return false;
        word = locale + LOCALE_LOWER;
    } else if (!find_word(s, &word)) {
        return false;
    }
    return load_u64(word, &s->letters) && s->letters != 0;
}

// glibc's table has 32 bits for each character.
static bool by_table(StringCall *s, u64 *value)
{
    return find_table(s) && *value < TABLE_BYTES && load_u32(s->letters + 4 * *value, value);
}

bool string_fold(StringCall *s, u64 *x, u64 *y)
{
    // The Turkish i is not even beyond ASCII.
    if ((*x | *y) & 0x80 || (fold(*x) == fold(*y) && fold(*x) == 'i'))
        return by_table(s, x) && by_table(s, y);
    *x = fold(*x);
    *y = fold(*y);
    return true;
}
