// SPDX-License-Identifier: MIT
//
// The client's calls on paths: which are answered here, and which go to the kernel
// with another path.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/loader/loader.h"
#include "engine/procview/procview_internal.h"

typedef enum LinkRule {
    RULE_NONE, // no row
    RULE_FOLLOW,
    RULE_NOFOLLOW,
    RULE_READ,
    RULE_AT_FLAGS,
    RULE_OPEN_FLAGS,
    RULE_OPEN_HOW,
} LinkRule;

typedef struct PathRow {
    u8 dirfd, path;
    u8 rule;  // LinkRule
    u8 flags; // the argument that holds flags
} PathRow;

#define NO_DIRFD 6
#define FOLLOW RULE_FOLLOW, 0
#define NOFOLLOW RULE_NOFOLLOW, 0
#define READ RULE_READ, 0
#define AT(i) RULE_AT_FLAGS, i
#define OPEN(i) RULE_OPEN_FLAGS, i
#define OPEN_HOW RULE_OPEN_HOW, 0
static const PathRow rows[512] = {
#define PATH_CALL(name, dirfd, path, links) [SYS_##name] = { dirfd, path, links },
#include "engine/procview/path_calls.def"
#undef PATH_CALL
};

static bool is_open(const PathRow *row)
{
    return row->rule == RULE_OPEN_FLAGS || row->rule == RULE_OPEN_HOW;
}

// The O_ flags of an open; false when the kernel should judge the call by itself.
static bool open_flags(const PathRow *row, const u64 args[6], u64 *ret_flags)
{
    struct open_how how;

    if (row->rule == RULE_OPEN_FLAGS) {
        *ret_flags = (u32)args[row->flags];
        return true;
    }
    // A `resolve` may forbid the very links that we would follow.
    if (args[3] < sizeof(how) || !guest_read(args[2], &how, sizeof(how)) || how.resolve)
        return false;
    *ret_flags = how.flags;
    return true;
}

// ------------------------------------------------------------------------ exe

static bool means_the_link(const PathRow *row, const u64 args[6])
{
    u64 flags;

    switch ((LinkRule)row->rule) {
    case RULE_NOFOLLOW: return true;
    case RULE_AT_FLAGS: return (args[row->flags] & AT_SYMLINK_NOFOLLOW) != 0;
    case RULE_OPEN_FLAGS:
    case RULE_OPEN_HOW: return !open_flags(row, args, &flags) || (flags & O_NOFOLLOW) != 0;
    default: return false;
    }
}

// The kernel lets nobody write to a running program, but knows only the engine as such.
static bool opens_for_writing(const PathRow *row, const u64 args[6])
{
    u64 flags;

    return is_open(row) && open_flags(row, args, &flags) && !(flags & O_PATH) &&
           ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC));
}

static bool answer_exe(const PathRow *row, ProcCall *call)
{
    if (means_the_link(row, call->args))
        return false;
    files_exe_path(call->path, sizeof(call->path));
    const char *path = call->path[0] ? call->path : loader_exe_path();
    if (opens_for_writing(row, call->args)) {
        i64 denied = raw_syscall3(SYS_faccessat, (u64)AT_FDCWD, (u64)path, 2);
        call->result = denied ? denied : -ETXTBSY;
        return true;
    }
    call->args[row->path] = (u64)path;
    // Without a descriptor the text of the link is what we remember.
    if (row->rule == RULE_READ && !call->path[0]) {
        u64 len = min_u64(strlen(path), call->args[row->path + 1 + 1]);
        call->result = guest_write(call->args[row->path + 1], path, len) ? (i64)len : -EFAULT;
        return true;
    }
    return false;
}

// ---------------------------------------------------------------------- others

static bool answer_file(const PathRow *row, ProcFile file, ProcCall *call)
{
    u64 flags;

    if (!is_open(row) || !files_is_ours(file) || !open_flags(row, call->args, &flags))
        return false;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_PATH | O_DIRECTORY)))
        return false;
    call->result = files_open(file, flags);
    return true;
}

bool procview_intercept(u64 nr, const u64 args[6], ProcCall *ret_call)
{
    const PathRow *row = &rows[nr];

    memcpy(ret_call->args, args, sizeof(ret_call->args));
    ret_call->counts_hidden = false;
    int dirfd = row->dirfd == NO_DIRFD ? AT_FDCWD : (int)args[row->dirfd];
    ProcFile file = names_classify_argument(dirfd, args[row->path]);
    switch (file) {
    case PROC_OTHER: return false;
    case PROC_HIDDEN: ret_call->result = -ENOENT; return true;
    case PROC_FD_DIR: ret_call->counts_hidden = true; return false;
    case PROC_EXE: return answer_exe(row, ret_call);
    default: return answer_file(row, file, ret_call);
    }
}

// ------------------------------------------------------------ size of /proc/PID/fd

// Since Linux 6.2 the size of that directory is the number of descriptors.
void procview_uncount(u64 nr, const ProcCall *call)
{
    GuestAddr at;
    u64 size, hidden = descriptors_count();

    switch (nr) {
    case SYS_stat:
    case SYS_lstat: at = call->args[1] + offsetof(struct stat, st_size); break;
    case SYS_newfstatat: at = call->args[2] + offsetof(struct stat, st_size); break;
    case SYS_statx: at = call->args[4] + offsetof(struct statx, stx_size); break;
    default: return;
    }
    if (guest_read(at, &size, sizeof(size)) && size >= hidden) {
        size -= hidden;
        guest_write(at, &size, sizeof(size));
    }
}
