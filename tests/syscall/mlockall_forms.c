// SPDX-License-Identifier: MIT
// BUILD: -O1
//
// mlockall brings the program's memory in and keeps it, but not memory that the program does not
// know of: what is resident grows by little.
#include "guest.h"
#include <sys/mman.h>

static long status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return kib;
}

static bool all_resident(unsigned char *memory, size_t pages)
{
    unsigned char resident[64];
    CHECK(pages <= sizeof resident && mincore(memory, pages * 4096, resident) == 0);
    for (size_t i = 0; i < pages; i++)
        if (!(resident[i] & 1))
            return false;
    return true;
}

static unsigned char *map_some(int protection)
{
    return mmap(NULL, 64 * 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
    unsigned char *before = map_some(PROT_READ | PROT_WRITE);
    map_some(PROT_NONE);
    long resident = status_kib("VmRSS");
    SHOW(mlockall(0));
    SHOW(mlockall(1 << 20));
    SHOW(mlockall(MCL_ONFAULT));
    SHOW(mlockall(MCL_CURRENT | MCL_ONFAULT));
    say("on fault: resident %d\n", all_resident(before, 64));
    SHOW(mlockall(MCL_CURRENT));
    say("current: resident %d\n", all_resident(before, 64));
    unsigned char *after = map_some(PROT_READ | PROT_WRITE);
    say("later: resident %d\n", all_resident(after, 64));
    SHOW(mlockall(MCL_CURRENT | MCL_FUTURE));
    say("later, before the call: resident %d\n", all_resident(after, 64));
    after = map_some(PROT_READ | PROT_WRITE);
    say("future: resident %d\n", all_resident(after, 64));
    say("locked %d, grew by less than 64 MiB %d\n", status_kib("VmLck") >= 3 * 256,
        status_kib("VmRSS") - resident < 64 * 1024);
    SHOW(munlockall());
    say("locked %ld\n", status_kib("VmLck"));
    return 0;
}
