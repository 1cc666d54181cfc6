// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// BUILD[nonpie]: -O2 -no-pie -fno-pie
//
// /proc/self/maps lists the client's mappings, each with its permissions and path, in order,
// without overlaps, and nothing of the engine.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { MAX_LINES = 400, PAGE = 4096 };
static struct Mapping {
    unsigned long start, end, offset;
    char permissions[8], path[512];
} maps[MAX_LINES];
static int map_count;
static int initialised = 1;

static void read_maps(void)
{
    map_count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    char line[1024];
    while (fgets(line, sizeof line, file) && map_count < MAX_LINES) {
        struct Mapping *m = &maps[map_count++];
        m->path[0] = 0;
        CHECK(sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &m->start, &m->end, m->permissions,
                     &m->offset, m->path) >= 4);
    }
    fclose(file);
}

static void show_where(const char *what, const void *address)
{
    unsigned long a = (unsigned long)address;
    for (int i = 0; i < map_count; i++)
        if (a >= maps[i].start && a < maps[i].end) {
            const char *name = strrchr(maps[i].path, '/');
            say("%s: %s %s\n", what, maps[i].permissions, name ? name + 1 : maps[i].path);
            return;
        }
    say("%s: not mapped\n", what);
}

static void show_own_mapping(const char *what, char *address, size_t size)
{
    read_maps();
    for (int i = 0; i < map_count; i++) {
        unsigned long start = maps[i].start, end = maps[i].end, a = (unsigned long)address;
        if (start >= a && end <= a + size)
            say("%s: +%lx..+%lx %s offset %lx %s\n", what, start - a, end - a,
                maps[i].permissions, maps[i].path[0] ? maps[i].offset : 0, maps[i].path);
    }
}

int main(void)
{
    static const char *const names[] = {"[stack]", "[vdso]"};
    int unordered = 0, foreign = 0, local = 0;
    void *heap = malloc(100);
    read_maps();
    for (int i = 0; i < map_count; i++) {
        unordered += i > 0 && maps[i].start < maps[i - 1].end;
        foreign += strstr(maps[i].path, "muninn") != NULL || strstr(maps[i].path, "Zydis") != NULL;
    }
    say("unordered %d, foreign %d\n", unordered, foreign);
    for (size_t n = 0; n < 2; n++) {
        int found = 0;
        for (int i = 0; i < map_count; i++)
            found += strcmp(maps[i].path, names[n]) == 0;
        say("%s: %d\n", names[n], found);
    }
    show_where("code", (void *)main);
    show_where("data", &initialised);
    show_where("constant", names[0]);
    show_where("stack", &local);
    show_where("heap", heap);
    show_where("null", NULL);

    int anonymous = MAP_PRIVATE | MAP_ANONYMOUS, fd = memfd_create("a-name", 0);
    CHECK(ftruncate(fd, 8 * PAGE) == 0);
    char *area = mmap(NULL, 16 * PAGE, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0);
    show_own_mapping("reserved", area, 16 * PAGE);
    mprotect(area + PAGE, PAGE, PROT_READ | PROT_WRITE);
    mprotect(area + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC);
    munmap(area + 5 * PAGE, PAGE);
    mmap(area + 6 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 2 * PAGE);
    mmap(area + 9 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous | MAP_FIXED, -1, 0);
    show_own_mapping("carved", area, 16 * PAGE);
    munmap(area, 16 * PAGE);
    show_own_mapping("gone", area, 16 * PAGE);
    return 0;
}
