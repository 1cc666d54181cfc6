// SPDX-License-Identifier: MIT
//
// The vdso is code that the kernel gave to the engine and that the client wants
// to call. Its data pages are reached by rip-relative operands, so the group of
// mappings is moved together, distances kept, to where the cache can reach it.
// A kernel that seals it gets it translated in place.
#include <linux/mman.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/loader/loader_internal.h"

#define VDSO_PARTS  8
#define MAP_RESERVE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

typedef struct VdsoPart {
    u64 start, end;
    char name[24];
    bool is_code;
} VdsoPart;

static bool parse_part(const char *line, VdsoPart *ret_part)
{
    const char *name = strstr(line, "[v");
    if (!name || (strncmp(name, "[vdso]", 6) != 0 && strncmp(name, "[vvar", 5) != 0))
        return false;

    VdsoPart part = {.is_code = name[2] == 'd'};
    part.start = text_parse_hex(&line);
    line++;
    part.end = text_parse_hex(&line);
    for (size_t i = 0; i < sizeof part.name - 1 && name[i] && name[i] != '\n'; i++)
        part.name[i] = name[i];
    *ret_part = part;
    return true;
}

static u32 find_parts(VdsoPart *parts)
{
    static char maps[256 * KiB]; // at the start of the process there are few mappings
    u32 count = 0;

    i64 len = read_whole("/proc/self/maps", maps, sizeof maps - 1);
    if (len < 0)
        return 0;
    maps[len] = 0;
    for (char *line = maps; line && *line && count < VDSO_PARTS;) {
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = 0;
        if (parse_part(line, &parts[count]))
            count++;
        line = newline ? newline + 1 : NULL;
    }
    return count;
}

static bool move_part(const VdsoPart *part, u64 from, u64 to)
{
    u64 len = part->end - part->start;

    return syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

static bool move_parts(const VdsoPart *parts, u32 count, u64 shift)
{
    for (u32 i = 0; i < count; i++) {
        if (move_part(&parts[i], parts[i].start, parts[i].start + shift))
            continue;
        while (i-- > 0)
            move_part(&parts[i], parts[i].start + shift, parts[i].start);
        return false;
    }
    return true;
}

// Returns how far the parts have been moved: `shift`, or 0.
static u64 move_away(const VdsoPart *parts, u32 count, u64 shift)
{
    u8 *copies[VDSO_PARTS] = {0};
    for (u32 i = 0; i < count; i++) {
        if (parts[i].is_code)
            copies[i] = vdso_copy(parts[i].start, parts[i].end - parts[i].start);
    }
    if (!move_parts(parts, count, shift))
        return 0;
    for (u32 i = 0; i < count; i++) {
        if (parts[i].is_code)
            vdso_stand_in(parts[i].start, parts[i].end - parts[i].start, copies[i]);
    }
    return shift;
}

u64 vdso_adopt(void)
{
    VdsoPart parts[VDSO_PARTS];
    u64 vdso = 0;

    u32 count = find_parts(parts);
    if (count == 0)
        return 0;
    u64 low = parts[0].start, len = parts[count - 1].end - low;
    u64 shift = 0;
    i64 room = aspace_map_named(0, len, 0, MAP_RESERVE | MAP_32BIT, -1, 0, NULL);
    if (room >= 0) {
        sys_munmap((u64)room, len);
        shift = move_away(parts, count, (u64)room - low);
    }
    for (u32 i = 0; i < count; i++) {
        u64 start = parts[i].start + shift;
        aspace_adopt(start, start + (parts[i].end - parts[i].start),
                     PROT_READ | (parts[i].is_code ? PROT_EXEC : 0), parts[i].name);
        if (parts[i].is_code)
            vdso = start;
    }
    return vdso;
}
