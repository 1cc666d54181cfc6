// SPDX-License-Identifier: MIT
//
// The system calls of a function that runs after the client has ended (run/last_call.h):
// last_calls.def says which are performed, and how the others are answered.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/perform/perform.h"
#include "engine/syscall/syscall.h"

bool last_call_gives_up;

static i64 give_up(void)
{
    last_call_gives_up = true;
    return -ENOSYS;
}

static i64 answer_zero(const u64 args[6])
{
    (void)args;
    return 0;
}

static i64 answer_descriptor(const u64 args[6])
{
    i64 flags = raw_syscall2(SYS_fcntl, (u32)args[0], F_GETFL);
    return flags < 0 ? flags : 0;
}

static i64 answer_write(const u64 args[6])
{
    i64 r = answer_descriptor(args);
    return r < 0 ? r : (i64)args[2];
}

static i64 answer_writev(const u64 args[6])
{
    i64 sum = answer_descriptor(args);
    struct iovec piece;

    for (u64 i = 0; sum >= 0 && i < args[2]; i++) {
        if (i >= UIO_MAXIOV)
            return -EINVAL;
        if (!guest_read(args[1] + i * sizeof(piece), &piece, sizeof(piece)))
            return -EFAULT;
        sum += (i64)piece.iov_len;
    }
    return sum;
}

// The offset that there would be. Other processes may share the descriptor, so it stays.
static i64 answer_lseek(const u64 args[6])
{
    i64 now = raw_syscall3(SYS_lseek, args[0], 0, SEEK_CUR);
    struct stat file;

    if (now < 0)
        return now;
    switch (args[2]) {
    case SEEK_SET: now = 0; break;
    case SEEK_CUR: break;
    case SEEK_END:
        if (raw_syscall2(SYS_fstat, args[0], (u64)&file) != 0)
            return -EBADF;
        now = file.st_size;
        break;
    default: return -EINVAL;
    }
    return now + (i64)args[1] < 0 ? -EINVAL : now + (i64)args[1];
}

// Nobody will wake us, and nobody waits to be woken.
static i64 answer_futex(const u64 args[6])
{
    u32 word;

    switch (args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP: return 0;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: break;
    default: return give_up();
    }
    if (!guest_read(args[0], &word, sizeof(word)))
        return -EFAULT;
    if (word != (u32)args[2])
        return -EAGAIN;
    return args[3] ? -ETIMEDOUT : give_up();
}

static bool is_private_memory(const u64 args[6])
{
    return (args[3] & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static bool is_not_shared(const u64 args[6])
{
    lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find(args[0]);
    bool ok = mapping && !(mapping->flags & MAP_SHARED);
    lock_release(&engine_lock);
    return ok;
}

static bool is_terminal_question(const u64 args[6])
{
    return args[1] == TCGETS;
}

static bool is_descriptor_question(const u64 args[6])
{
    return args[1] == F_GETFD || args[1] == F_GETFL;
}

static bool always(const u64 args[6])
{
    (void)args;
    return true;
}

static const struct {
    bool (*permits)(const u64 args[6]);
    i64 (*answer)(const u64 args[6]);
} rows[NR_LIMIT] = {
#define PERFORMED(name) [NR_##name] = {always, NULL},
#define PERFORMED_IF(name, test) [NR_##name] = {test, NULL},
#define ANSWERED(name, answer) [NR_##name] = {NULL, answer},
#include "engine/perform/last_calls.def"
#undef PERFORMED
#undef PERFORMED_IF
#undef ANSWERED
};

bool last_call_permits(u64 nr, const u64 args[6])
{
    return nr < NR_LIMIT && rows[nr].permits && rows[nr].permits(args);
}

i64 last_call_answer(u64 nr, const u64 args[6])
{
    return nr < NR_LIMIT && rows[nr].answer ? rows[nr].answer(args) : give_up();
}
