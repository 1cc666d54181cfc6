// SPDX-License-Identifier: MIT
//
// Prints massif files that were damaged at random, built with sanitizers: fuzz SEED COUNT FILE...
// The damage is a few bytes changed, cut, doubled or replaced by words of the format. Each
// copy is written to the path in $DAMAGED and handed to the real ms_print_main().
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/ms_print/ms_print.h"
#include "inspect/ms_print/page.h"
#include "recording/recording.h"

// Recordings are read by other code, which has a fuzzer of its own.
bool foreign_is_recordable(const ForeignText *text)
{
    return text == NULL;
}

Recording *recorded_open(const char *path, char **ret_error)
{
    *ret_error = strdup(path);
    return NULL;
}

bool recorded_is_damaged(void)
{
    return false;
}

MassifFile *recorded_whole(Recording *recording, char **ret_error)
{
    (void)recording, (void)ret_error;
    return NULL;
}

MassifFile *recorded_at(Recording *recording, const char *time, char **ret_error)
{
    (void)recording, (void)time, (void)ret_error;
    return NULL;
}

int recorded_print_change(const PageOptions *options, Recording *recording, const char *times,
                          char **ret_error)
{
    (void)options, (void)recording, (void)times, (void)ret_error;
    return 1;
}

void recording_free(Recording *recording)
{
    (void)recording;
}

static unsigned long long state;

static unsigned next_random(unsigned below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return below ? (unsigned)(state >> 33) % below : 0;
}

static const char *const words[] = {
    "snapshot=", "time=", "heap_tree=peak\n", "heap_tree=detailed\n", "heap_tree=empty\n", "n0: ",
    " n99999999999: 18446744073709551615 ", "\n", "\r\n", "desc:", "time_unit: s\n", "time=1e999",
    "mem_heap_B=18446744073709551615\n", "snapshot=18446744073709551615\n", "#", "=", "-1", "  ",
    "                                                                     n1: 5 x\n",
};

static size_t damage(char *data, size_t size, size_t room)
{
    for (unsigned hits = 1 + next_random(8); hits > 0 && size > 16; hits--) {
        size_t at = next_random((unsigned)size), span = 1 + next_random(64);
        const char *word = words[next_random(sizeof(words) / sizeof(*words))];
        span = span < size - at ? span : size - at;
        switch (next_random(4)) {
        case 0:
            data[at] = (char)next_random(256);
            break;
        case 1:
            memmove(data + at, data + at + span, size - at - span);
            size -= span;
            break;
        case 2:
            if (size + span < room) {
                memmove(data + at + span, data + at, size - at);
                size += span;
            }
            break;
        default:
            if (size + strlen(word) < room) {
                memmove(data + at + strlen(word), data + at, size - at);
                memcpy(data + at, word, strlen(word));
                size += strlen(word);
            }
        }
    }
    return next_random(8) == 0 ? next_random((unsigned)size) : size;
}

int main(int argc, char **argv)
{
    const char *path = getenv("DAMAGED");
    size_t room = 4u << 20;
    char *data = malloc(room);

    if (argc < 4 || !path || !data)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    for (int i = 0; i < atoi(argv[2]); i++) {
        FILE *file = fopen(argv[3 + next_random((unsigned)argc - 3)], "r");
        size_t size = file ? fread(data, 1, room / 2, file) : 0;
        if (file)
            fclose(file);
        size = damage(data, size, room);
        file = fopen(path, "w");
        if (!file || fwrite(data, 1, size, file) != size)
            return 2;
        fclose(file);
        char *words_of_call[] = {"--threshold=0", (char *)path};
        ms_print_main(2, words_of_call);
    }
    free(data);
    return 0;
}
