// SPDX-License-Identifier: MIT
//
// Which descriptors a call has made, and which it was refused for. The table of
// system calls knows those in results and arguments; those in the client's memory
// are found here.
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/socket.h>

#include "engine/aspace/aspace.h"
#include "engine/fdtrack/fdtrack_internal.h"
#include "engine/syscall/syscall.h"

enum { MESSAGES_MAX = 1024, FDS_IN_MESSAGE_MAX = 253 }; // the kernel's own limits

// ------------------------------------------------------- new ones, in results

// ioctls whose result is a descriptor.
static const u32 making_ioctls[] = {
    0x5441,                                 // TIOCGPTPEER
    0xae01, 0xae41,                         // KVM_CREATE_VM, KVM_CREATE_VCPU
    0xb701, 0xb702,                         // NS_GET_USERNS, NS_GET_PARENT
    0xaa00,                                 // USERFAULTFD_IOC_NEW
};

static bool ioctl_makes(u64 request)
{
    for (size_t i = 0; i < ARRAY_LEN(making_ioctls); i++) {
        if ((u32)request == making_ioctls[i])
            return true;
    }
    return false;
}

// Whether the result of this call, which has succeeded, is a descriptor that was not there.
static bool result_is_new(u64 nr, const u64 args[6], i64 result)
{
    SyscallCall call = {.nr = nr, .read_guest = guest_read};
    for (unsigned i = 0; i < SYSCALL_ARGS; i++)
        call.args[i] = args[i];
    switch (nr) {
    case NR_ioctl: return ioctl_makes(args[1]);
    case NR_seccomp: return (args[1] & 8) && result > 0; // SECCOMP_FILTER_FLAG_NEW_LISTENER
    case NR_landlock_create_ruleset: return args[2] == 0; // else a number of the interface
    case NR_signalfd:
    case NR_signalfd4: return (i32)args[0] != result;
    case NR_dup2: return (i32)args[0] != result;
    default: break;
    }
    const SyscallRow *row = syscall_resolve(&call);
    return row && row->flags & SYS_NEW_FD;
}

// -------------------------------------------------- new ones, in memory

static void one_at(ThreadCtx *ctx, GuestAddr address, FdFn *fn)
{
    i32 fd, told;
    if (!guest_read(address, &fd, sizeof(fd)))
        return;
    told = fn(ctx, fd);
    if (told != fd)
        guest_write(address, &told, sizeof(told));
}

static void pair_at(ThreadCtx *ctx, GuestAddr address, FdFn *fn)
{
    one_at(ctx, address, fn);
    one_at(ctx, address + sizeof(i32), fn);
}

// SCM_RIGHTS messages of a msghdr that the kernel has filled in.
static void message_at(ThreadCtx *ctx, GuestAddr address, FdFn *fn)
{
    struct msghdr message;
    struct cmsghdr head;
    if (!guest_read(address, &message, sizeof(message)))
        return;
    GuestAddr at = (GuestAddr)message.msg_control;
    u64 left = min_u64(message.msg_controllen, 64 * KiB);
    while (left >= sizeof(head) && guest_read(at, &head, sizeof(head)) &&
           head.cmsg_len >= sizeof(head) && head.cmsg_len <= left) {
        u64 count = (head.cmsg_len - sizeof(head)) / sizeof(i32);
        bool is_rights = head.cmsg_level == SOL_SOCKET && head.cmsg_type == SCM_RIGHTS;
        bool is_pidfd = head.cmsg_level == SOL_SOCKET && head.cmsg_type == 4; // SCM_PIDFD
        for (u64 i = 0; (is_rights || is_pidfd) && i < count && i < FDS_IN_MESSAGE_MAX; i++)
            one_at(ctx, at + sizeof(head) + i * sizeof(i32), fn);
        u64 step = CMSG_ALIGN(head.cmsg_len);
        if (step >= left)
            break;
        at += step;
        left -= step;
    }
}

static void clone_pidfd(ThreadCtx *ctx, u64 nr, const u64 args[6], FdFn *fn)
{
    u64 flags_and_pidfd[2] = {args[0], args[2]};
    if (nr == NR_clone3 && !guest_read(args[0], flags_and_pidfd, sizeof(flags_and_pidfd)))
        return;
    if (flags_and_pidfd[0] & CLONE_PIDFD)
        one_at(ctx, flags_and_pidfd[1], fn);
}

i64 calls_for_each_new(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 result, FdFn *fn)
{
    if (result < 0)
        return result;
    switch (nr) {
    case NR_pipe:
    case NR_pipe2: pair_at(ctx, args[0], fn); return result;
    case NR_socketpair: pair_at(ctx, args[3], fn); return result;
    case NR_recvmsg: message_at(ctx, args[1], fn); return result;
    case NR_recvmmsg:
        for (i64 i = 0; i < result && i < MESSAGES_MAX; i++)
            message_at(ctx, args[1] + (u64)i * sizeof(struct mmsghdr), fn);
        return result;
    case NR_clone:
    case NR_clone3:
        if (result > 0) // not in the child
            clone_pidfd(ctx, nr, args, fn);
        return result;
    default:
        if (result <= INT32_MAX && result_is_new(nr, args, result))
            return fn(ctx, (i32)result);
        return result;
    }
}

// ------------------------------------------------------------------ bad ones

// fcntl(fd, F_GETFD) is how a program finds out whether a number is open.
static bool only_asks(u64 nr, const u64 args[6])
{
    return nr == NR_fcntl && ((u32)args[1] == F_GETFD || (u32)args[1] == F_GETFL);
}

bool calls_find_bad(u64 nr, const u64 args[6], i32 *ret_fd)
{
    const SyscallRow *row = syscall_row(nr);
    bool takes_number = nr == NR_dup2 || nr == NR_dup3; // the second need not be open
    if (only_asks(nr, args))
        return false;
    for (unsigned i = 0; row && i < SYSCALL_ARGS; i++) {
        u8 kind = row->args[i].kind;
        i32 fd = (i32)args[i];
        bool names = kind == ARG_FD || (kind == ARG_DIRFD && fd != AT_FDCWD);
        if (names && !(takes_number && i == 1) && !fd_is_open(fd)) {
            *ret_fd = fd;
            return true;
        }
    }
    return false;
}
