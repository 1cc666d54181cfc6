// SPDX-License-Identifier: MIT
//
// Files that the client writes while it has code mapped from them: no page
// faults, yet the code is another. After a call that has written to a descriptor,
// the blocks made from its file go.
//
// A look at the file costs a system call, so what is known of a descriptor is
// kept: `clean[fd]` is the state of aspace_code_files() for which the file behind
// it had no blocks. Closing or replacing a descriptor forgets that. Another thread
// that closes one during a write to it may be forgotten about; so may its client.
#include <string.h>
#include <sys/stat.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/ctx/ctx.h"
#include "engine/perform/file_writes.h"
#include "engine/syscall/syscall.h"

#define CLEAN_MAX 1024 // descriptors above are looked at every time
static u64 clean[CLEAN_MAX]; // atomic

// 1 + the argument that is the descriptor written to.
static const u8 written_fd[NR_LIMIT] = {
    [NR_write] = 1,    [NR_pwrite64] = 1,  [NR_writev] = 1,    [NR_pwritev] = 1,
    [NR_pwritev2] = 1, [NR_sendfile] = 1,  [NR_ftruncate] = 1, [NR_fallocate] = 1,
    [NR_splice] = 3,   [NR_copy_file_range] = 3,
};

static void look_at(i32 fd)
{
    u64 state = aspace_code_files();
    struct stat st;

    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&st) != 0)
        return;
    bool has_code = false;
    if (S_ISREG(st.st_mode)) {
        lock_acquire(&engine_lock);
        has_code = aspace_file_written(st.st_dev, st.st_ino);
        lock_release(&engine_lock);
    }
    if (fd < CLEAN_MAX && thread_ctx.thread.vfork_depth == 0) // else it has a table of its own
        __atomic_store_n(&clean[fd], has_code ? 0 : state, __ATOMIC_RELAXED);
}

static void forget(u64 fd)
{
    if (fd < CLEAN_MAX)
        __atomic_store_n(&clean[fd], 0, __ATOMIC_RELAXED);
}

void file_writes_before(u64 nr, const u64 args[6])
{
    switch (nr) {
    case NR_close: forget((u32)args[0]); break;
    case NR_dup2:
    case NR_dup3: forget((u32)args[1]); break;
    case NR_close_range: memset(clean, 0, sizeof(clean)); break;
    default: break;
    }
}

void file_writes_after(u64 nr, const u64 args[6], i64 result)
{
    if (nr >= NR_LIMIT || !written_fd[nr] || result < 0)
        return;
    i32 fd = (i32)args[written_fd[nr] - 1];
    if (fd >= 0 && fd < CLEAN_MAX && thread_ctx.thread.vfork_depth == 0 &&
        __atomic_load_n(&clean[fd], __ATOMIC_RELAXED) == aspace_code_files())
        return;
    look_at(fd);
}
