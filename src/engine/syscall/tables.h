// SPDX-License-Identifier: MIT
//
// Private to the folder: the names by which rows refer to layouts (types.c) and to
// sub-tables (subtables.c, ioctls.c), and the constants they share.
#ifndef MUNINN_ENGINE_SYSCALL_TABLES_H
#define MUNINN_ENGINE_SYSCALL_TABLES_H

#include "engine/syscall/syscall.h"

// A row states what it has and leaves out the rest, which is 0.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum SyscallSize {
#define SIZE(name, bytes) SIZE_##name = bytes,
#include "engine/syscall/sizes.def"
#undef SIZE
};

// Bits that decide whether an argument takes part, as the kernel numbers them.
enum SyscallBits {
    BITS_OPEN_CREATES = 00000100 | 020000000, // O_CREAT, __O_TMPFILE
    BITS_MAP_ANONYMOUS = 0x20,
    BITS_MREMAP_MOVES = 2 | 4, // MREMAP_FIXED, MREMAP_DONTUNMAP
    BITS_TIMER_ABSTIME = 1,
    BITS_CLONE_PARENT_TID = 0x00100000 | 0x00001000, // CLONE_PARENT_SETTID, CLONE_PIDFD
    BITS_CLONE_CHILD_TID = 0x01000000 | 0x00200000,  // CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID
    BITS_CLONE_SETTLS = 0x00080000,
};

#define TYPE_LIST(X) \
    X(addrlen_in) X(clone_args) X(epoll_event) X(ethtool) X(fiemap) X(file_handle) X(flock) \
    X(flock_get) X(futex_waitv) X(ifconf) X(ifreq_get) X(ifreq_name) X(io_event) \
    X(io_uring_buffers) X(io_uring_enter_arg) X(io_uring_files_update) X(io_uring_params) \
    X(iocb) X(iocb_ptr) X(iovec_in) X(iovec_out) X(itimerval) X(kexec_segment) X(keyctl_kdf) \
    X(mmsghdr_receive) X(mmsghdr_send) X(mnt_id_req) X(mq_attr_flags) X(mq_attr_open) X(msgbuf) \
    X(msghdr_receive) X(msghdr_send) X(open_how) X(pollfd) X(regset_get) X(regset_set) X(sg_io) \
    X(sigaction) X(sigevent) X(sigevent_whole) X(sigset_arg) X(sock_fprog) X(sockaddr) X(stack) \
    X(timeval_indexed) X(timex) X(utimens) X(wait_info) X(xattr_args_get) X(xattr_args_set)

#define DECLARE_TYPE(name) extern const SyscallType type_##name;
TYPE_LIST(DECLARE_TYPE)
#undef DECLARE_TYPE

#define SUB_LIST(X) \
    X(ioctl) X(ioctl_other) X(fcntl) X(prctl) X(arch_prctl) X(futex) X(shmctl) X(semctl) \
    X(msgctl) X(keyctl) X(ptrace) X(quotactl) X(quotactl_fd) X(syslog) X(sysfs) \
    X(modify_ldt) X(seccomp) X(io_uring_enter) X(io_uring_register) X(fsconfig) \
    X(landlock_rule) X(name_to_handle) X(kcmp) X(setsockopt) X(getsockopt) X(bpf)

// The table of an operation, from its rows: sub_fcntl has fcntl_rows.
#define SUB(table, on_arg, ...) \
    const SyscallSub sub_##table = { #table, .arg = (on_arg), .mask = ~0u, \
        .count = ARRAY_LEN(table##_rows), .rows = table##_rows, __VA_ARGS__ }

#define DECLARE_SUB(name) extern const SyscallSub sub_##name;
SUB_LIST(DECLARE_SUB)
#undef DECLARE_SUB

#endif
