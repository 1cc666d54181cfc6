// SPDX-License-Identifier: MIT
//
// Names of files where there is no /proc that tells the name of a descriptor: what the client has
// opened last, by device and inode. A library is mapped right after it was opened.
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/aspace/aspace_internal.h"
#include "engine/ctx/ctx.h"

enum { REMEMBERED = 16 };

typedef struct OpenedName {
    u64 dev, inode;
    char path[512];
} OpenedName;

static OpenedName names[REMEMBERED]; // under the engine lock
static u32 next;

// -1: it was not asked yet.
static bool has_proc(void)
{
    static i32 known = -1;
    if (known < 0)
        known = raw_syscall2(SYS_access, (u64)"/proc/thread-self/fd", F_OK) == 0;
    return known;
}

void aspace_opened(int fd, GuestAddr path)
{
    char given[sizeof(names[0].path)];

    if (!has_proc() && guest_read_string(path, given, sizeof(given)) > 0)
        aspace_opened_as(fd, given);
}

void aspace_opened_as(int fd, const char *given)
{
    struct stat status;
    OpenedName opened;
    char folder[sizeof(opened.path)] = "";

    if (has_proc() || raw_syscall2(SYS_fstat, (u64)(i64)fd, (u64)&status) != 0 ||
        !S_ISREG(status.st_mode))
        return;
    if (given[0] != '/' && raw_syscall2(SYS_getcwd, (u64)folder, sizeof(folder)) <= 0)
        return;
    opened.dev = status.st_dev;
    opened.inode = status.st_ino;
    text_format(opened.path, sizeof(opened.path), "%s%s%s", folder, *folder ? "/" : "", given);
    lock_acquire(&engine_lock);
    names[next++ % REMEMBERED] = opened;
    lock_release(&engine_lock);
}

bool opened_name(u64 dev, u64 inode, char *path, size_t path_size)
{
    for (u32 i = 0; i < REMEMBERED; i++) {
        const OpenedName *n = &names[(next - 1 - i) % REMEMBERED];
        if (n->inode == inode && n->dev == dev && n->path[0]) {
            text_format(path, path_size, "%s", n->path);
            return true;
        }
    }
    return false;
}
