// SPDX-License-Identifier: MIT
//
// Foreign profiles that were damaged at random: whatever comes in, it ends in a recording whose
// sums agree or in a line that says why not. MODE=asan makes it worth the most.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "inspect/foreign/foreign.h"

enum { ROUNDS = 400, ROOM = 16384 };

static const char massif[] =
    "desc: --time-unit=B\ncmd: ./ex\ntime_unit: B\n#-----------\nsnapshot=0\n#-----------\n"
    "time=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n#-----------\n"
    "snapshot=1\n#-----------\ntime=9144\nmem_heap_B=9000\nmem_heap_extra_B=144\n"
    "mem_stacks_B=64\nheap_tree=detailed\nn2: 9000 (heap allocation functions) malloc\n"
    " n1: 8000 0x10918A: g (ex.c:4)\n  n0: 8000 0x109100: main (ex.c:9)\n"
    " n0: 1000 in 3 places, all below massif's threshold (1.00%)\n#-----------\nsnapshot=2\n"
    "time=9500\nmem_heap_B=5000\nmem_heap_extra_B=100\nmem_stacks_B=0\nheap_tree=empty\n"
    "snapshot=3\ntime=9600\nmem_heap_B=12000\nmem_heap_extra_B=100\nmem_stacks_B=0\n"
    "heap_tree=peak\nn1: 12000 (heap allocation functions) malloc\n"
    " n0: 12000 0x10918A: ??? (in /bin/x)\n";

static const char heaptrack[] =
    "v 10400 3\nX ./a b\nI 1000 5e29\ns 6 /bin/a\ns 4 main\ns 3 a.c\ni 1000 1 2 3 5\n"
    "t 1 0\ni 2000 1 2 3 6 2 3 7\nt 2 1\na 3e8 2\n+ 0\na 40 1\n+ 1\n- 1\nc 12\nR 536\n+ 1\n+ 0\n"
    "- 0\nc 20\n- 1\n";

// sample_type inuse_objects, inuse_space; a function, a location, a sample of 3 and 99.
static const char pprof[] =
    "\n\x02\x08\x01\n\x02\x08\x02*\x06\x08\x01\x10\x03 \x04\"\x0b\x08\x01\x18\x80 \"\x04\x08\x01"
    "\x10\x05\x12\x07\n\x01\x01\x12\x02\x03\x63" "2\x00" "2\x0dinuse_objects2\x0binuse_space"
    "2\x04leak2\x03" "a.c";

static const struct {
    const char *name, *data;
    size_t size;
} seeds[] = {
    {"massif", massif, sizeof(massif) - 1},
    {"heaptrack", heaptrack, sizeof(heaptrack) - 1},
    {"pprof", pprof, sizeof(pprof) - 1},
};

static u64 state = 1;

static u32 next_random(u32 below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return below ? (u32)(state >> 33) % below : 0;
}

static size_t damage(char *data, size_t size)
{
    static const char *const words[] = {"\n", "-1", "ffffffffffffffff", " 0 ", "time=", "n9: ",
                                        "18446744073709551615", "+ 0\n", "- 0\n", "\xff\xff\xff"};

    for (u32 hits = next_random(6); hits > 0 && size > 8; hits--) {
        size_t at = next_random((u32)size), span = min_u64(1 + next_random(24), size - at);
        const char *word = words[next_random(ARRAY_LEN(words))];
        switch (next_random(4)) {
        case 0:
            data[at] = (char)next_random(256);
            break;
        case 1:
            memmove(data + at, data + at + span, size - at - span);
            size -= span;
            break;
        case 2:
            memmove(data + at + span, data + at, size - at);
            size += span;
            break;
        default:
            memmove(data + at + strlen(word), data + at, size - at);
            memcpy(data + at, word, strlen(word));
            size += strlen(word);
        }
    }
    return next_random(10) == 0 ? next_random((u32)size) : size;
}

static void count_warning(void *arg, const char *line)
{
    *(u32 *)arg += line[0] != '\0';
}

static void write_file(const char *path, const char *data, size_t size)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fwrite(data, 1, size, file) == size);
    fclose(file);
}

// The live bytes of all sites at the end are those of the last slice.
static void check_sums(Recording *recording)
{
    u32 count = recording_site_count(recording);
    SiteSums *sums = calloc((size_t)count + 1, sizeof(*sums));
    u64 live = 0;
    size_t slices = recording_slice_count(recording);

    CHECK(recording_range(recording, 0, recording_last(recording).ns + 1, sums));
    for (u32 i = 0; i < count; i++)
        live += sums[i].live_bytes;
    if (slices > 0) {
        const SpaceTotals *totals = &recording_slice(recording, slices - 1)->totals;
        CHECK(live == totals->bytes[SPACE_HEAP] + totals->bytes[SPACE_MAPPED] +
                          totals->bytes[SPACE_STACK]);
    }
    free(sums);
}

// Returns whether it was made a recording.
static bool try_file(const char *path)
{
    char *error = NULL;
    u32 warnings = 0;
    Recording *recording = foreign_open(path, count_warning, &warnings, &error);

    CHECK(recording != NULL || error != NULL);
    if (recording)
        check_sums(recording);
    recording_free(recording);
    free(error);
    return recording != NULL;
}

TEST(whole_profiles_become_recordings)
{
    char path[] = "/tmp/muninn-hostile.XXXXXX";

    CHECK(mkstemp(path) >= 0);
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
        write_file(path, seeds[i].data, seeds[i].size);
        CHECK(try_file(path));
    }
    unlink(path);
}

TEST(damaged_profiles_end_in_a_recording_or_a_line)
{
    static char data[ROOM];
    char path[] = "/tmp/muninn-hostile.XXXXXX";
    u32 made = 0;

    CHECK(mkstemp(path) >= 0);
    for (u32 round = 0; round < ROUNDS; round++) {
        size_t seed = round % ARRAY_LEN(seeds);
        memcpy(data, seeds[seed].data, seeds[seed].size);
        write_file(path, data, damage(data, seeds[seed].size));
        made += try_file(path);
    }
    unlink(path);
    CHECK(made > ROUNDS / 10);
}

// Sums of such numbers would not fit anywhere: the file ends where they begin.
TEST(sizes_of_more_than_a_pib_are_damage)
{
    static const char *const numbers[] = {"9223372036854775807", "18446744073709551615",
                                          "99999999999999999999", "1125899906842625"};
    static const char text[] = "desc: -\ncmd: ./ex\ntime_unit: B\nsnapshot=0\ntime=1\n"
                               "mem_heap_B=5\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
                               "heap_tree=empty\nsnapshot=1\ntime=2\nmem_heap_B=%s\n"
                               "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n"
                               "n1: %s (heap allocation functions) malloc\n"
                               " n0: %s 0x1: main (a.c:4)\n";
    char path[] = "/tmp/muninn-hostile.XXXXXX", data[2048];

    CHECK(mkstemp(path) >= 0);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        for (u32 place = 0; place < 3; place++) {
            ForeignText file = {0};
            char *error = NULL;
            int size = snprintf(data, sizeof(data), text, place == 0 ? numbers[i] : "9",
                                place == 1 ? numbers[i] : "9", place == 2 ? numbers[i] : "9");
            write_file(path, data, (size_t)size);
            CHECK(foreign_read(path, &file, &error));
            MassifFile *parsed = massif_file_parse(&file, &error);
            CHECK(parsed && parsed->problem);
            if (place == 0)
                CHECK(strstr(parsed->problem, "a size of at most a PiB") != NULL);
            massif_file_free(parsed);
            CHECK(try_file(path));
        }
    }
    unlink(path);
}
