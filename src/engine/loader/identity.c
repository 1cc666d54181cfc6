// SPDX-License-Identifier: MIT
//
// What other processes see of this one: name, command line, environment.
#include <fcntl.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/loader/loader_internal.h"

// Fields of /proc/self/stat, counted from 1 as proc(5) does.
enum { STAT_START_DATA = 45, STAT_END_DATA = 46, STAT_START_BRK = 47 };

static u64 stat_field(const char *stat, int field)
{
    const char *p = strrchr(stat, ')'); // the name may contain anything; field 3 follows it
    u64 value = 0;

    for (int at = 2; p && at < field; at++) {
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    for (; p && *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (u64)(*p - '0');
    return value;
}

static void set_memory_map(const StackRequest *r, const StackLayout *l)
{
    char stat[2048];

    i64 len = read_whole("/proc/self/stat", stat, sizeof stat - 1);
    if (len <= 0)
        return;
    stat[len] = 0;
    // Data and break stay the engine's: the kernel acts on them.
    struct prctl_mm_map map = {
        .start_code = r->program->code_start,
        .end_code = r->program->code_end,
        .start_data = stat_field(stat, STAT_START_DATA),
        .end_data = stat_field(stat, STAT_END_DATA),
        .start_brk = stat_field(stat, STAT_START_BRK),
        .brk = (u64)syscall(SYS_brk, 0),
        .start_stack = l->sp,
        .arg_start = l->arg_start,
        .arg_end = l->arg_end,
        .env_start = l->env_start,
        .env_end = l->env_end,
        .auxv = (void *)l->auxv,
        .auxv_size = (u32)l->auxv_size,
        .exe_fd = (u32)-1,
    };
    syscall(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

void identity_set(const StackRequest *request, const StackLayout *layout)
{
    const char *slash = strrchr(request->exe_name, '/');

    syscall(SYS_prctl, PR_SET_NAME, slash ? slash + 1 : request->exe_name, 0, 0, 0);
    set_memory_map(request, layout);
}
