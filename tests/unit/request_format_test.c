// SPDX-License-Identifier: MIT
//
// printf for a client that lies: random formats over random memory end, stay inside the memory
// they may read, and print no more than the limit; known ones print what printf prints.
#include <stdlib.h>

#include "engine/request/request_internal.h"
#include "unit.h"

#define MEMORY_BASE 0x10000000ull
#define MEMORY_SIZE 8192ull
#define ROUNDS 4000

static u8 memory[MEMORY_SIZE];
static u64 state = 88172645463325252ull;

static u64 next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static bool read_memory(GuestAddr address, void *dst, size_t len)
{
    if (address < MEMORY_BASE || len > MEMORY_SIZE || address - MEMORY_BASE > MEMORY_SIZE - len)
        return false;
    memcpy(dst, memory + (address - MEMORY_BASE), len);
    return true;
}

typedef struct Printed {
    size_t count;
    char text[512];
} Printed;

static void keep(char c, void *arg)
{
    Printed *printed = arg;
    if (printed->count < sizeof(printed->text) - 1)
        printed->text[printed->count] = c;
    printed->count++;
}

// The format at the start of the memory, words on the client's "stack" behind it.
static size_t format_words(const char *format, const u64 *words, size_t count, Printed *printed)
{
    const struct {
        u32 gp_offset, fp_offset;
        u64 overflow, save_area;
    } list = { 48, 176, MEMORY_BASE + 2048, 0 };
    memset(printed, 0, sizeof(*printed));
    strcpy((char *)memory, format);
    memcpy(memory + 1024, &list, sizeof(list));
    memcpy(memory + 2048, words, count * sizeof(*words));
    return request_format(MEMORY_BASE, MEMORY_BASE + 1024, read_memory, keep, printed);
}

TEST(numbers_and_strings_are_as_printf_prints_them)
{
    Printed printed;
    strcpy((char *)memory + 4000, "guest text");
    const u64 words[] = { (u64)-5, 255, MEMORY_BASE + 4000, 'q', 0x1234, 1ull << 40 };
    size_t n = format_words("%d|%#x|%.5s|%c|%p|%lx|100%%", words, 6, &printed);
    CHECK(n == printed.count);
    CHECK(strcmp(printed.text, "-5|0xff|guest|q|0x1234|10000000000|100%") == 0);
}

TEST(what_is_unknown_is_printed_as_it_stands)
{
    Printed printed;
    const u64 words[4] = { 0 };
    format_words("%n %5y %", words, 4, &printed);
    CHECK(strcmp(printed.text, "%n %5y %") == 0);
}

TEST(widths_are_bounded)
{
    Printed printed;
    const u64 words[] = { INT32_MAX, 1, (u64)INT32_MIN, 1, 1 };
    CHECK(format_words("%*d%*d%99999d", words, 5, &printed) <= 3 * 256);
}

TEST(a_string_without_end_stops_at_the_limit)
{
    Printed printed;
    char format[1001] = "";
    u64 words[200];
    memset(memory, 'x', sizeof(memory));
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        strcat(format, "%s");
        words[i] = MEMORY_BASE + 4096;
    }
    memset(memory + 4096, 'x', 4096);
    CHECK(format_words(format, words, ARRAY_LEN(words), &printed) == REQUEST_TEXT_MAX);
}

TEST(random_formats_end_and_keep_to_their_memory)
{
    static const char letters[] = "%%%%%%-+ #0123456789*.hlLjztqdiuxXocspfFeEgGaAnm\n";
    for (unsigned round = 0; round < ROUNDS; round++) {
        Printed printed = { 0 };
        for (size_t i = 0; i < MEMORY_SIZE; i += 8) {
            u64 word = next_random();
            if (word % 3 == 0)
                word = MEMORY_BASE + word / 3 % (MEMORY_SIZE + 16);
            memcpy(memory + i, &word, 8);
        }
        for (size_t i = 0; i < 64; i++)
            memory[i] = (u8)letters[next_random() % (sizeof(letters) - 1)];
        memory[64] = 0;
        size_t n = request_format(MEMORY_BASE, MEMORY_BASE + 128 + next_random() % 4096, read_memory,
                                  keep, &printed);
        CHECK(n == printed.count && n <= REQUEST_TEXT_MAX);
    }
}
