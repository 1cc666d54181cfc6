// SPDX-License-Identifier: MIT
//
// The sub-tables of calls that multiplex, but for ioctl (ioctls.c), bpf (bpf.c) and those by which
// processes are changed and watched (subtables_process.c). Each
// row repeats the arguments of its call, because operations differ in how many they
// use and what they are. Where an operation has no row, the row of the call stands.
#include "engine/syscall/tables.h"

// ---- fcntl -----------------------------------------------------------------

#define FCNTL(name, cmd, flags, ...) \
    { cmd, { name, flags, { { "fd", ARG_FD }, { "cmd", ARG_INT }, __VA_ARGS__ } } }
#define FCNTL_LOCK(name, cmd, flags, kind, layout) \
    FCNTL(name, cmd, flags, \
          { "lock", kind, .len = LEN_CONST(SIZE_flock), .type = &(layout) })

static const SyscallSubRow fcntl_rows[] = {
    FCNTL("F_DUPFD", 0, SYS_NEW_FD, { "arg", ARG_INT }),
    FCNTL("F_GETFD", 1, 0, { 0 }),
    FCNTL("F_SETFD", 2, 0, { "arg", ARG_INT }),
    FCNTL("F_GETFL", 3, 0, { 0 }),
    FCNTL("F_SETFL", 4, 0, { "arg", ARG_INT }),
    FCNTL_LOCK("F_GETLK", 5, 0, ARG_INOUT, type_flock_get),
    FCNTL_LOCK("F_SETLK", 6, 0, ARG_IN, type_flock),
    FCNTL_LOCK("F_SETLKW", 7, SYS_BLOCKS, ARG_IN, type_flock),
    FCNTL("F_SETOWN", 8, 0, { "arg", ARG_INT }),
    FCNTL("F_GETOWN", 9, 0, { 0 }),
    FCNTL("F_SETSIG", 10, 0, { "arg", ARG_INT }),
    FCNTL("F_GETSIG", 11, 0, { 0 }),
    FCNTL("F_SETOWN_EX", 15, 0, { "F_SETOWN_EX", ARG_IN, .len = LEN_CONST(SIZE_f_owner_ex) }),
    FCNTL("F_GETOWN_EX", 16, 0, { "F_GETOWN_EX", ARG_OUT, .len = LEN_CONST(SIZE_f_owner_ex) }),
    FCNTL("F_GETOWNER_UIDS", 17, 0, { "F_GETOWNER_UIDS", ARG_OUT, .len = LEN_CONST(8) }),
    FCNTL_LOCK("F_OFD_GETLK", 36, 0, ARG_INOUT, type_flock_get),
    FCNTL_LOCK("F_OFD_SETLK", 37, 0, ARG_IN, type_flock),
    FCNTL_LOCK("F_OFD_SETLKW", 38, SYS_BLOCKS, ARG_IN, type_flock),
    FCNTL("F_SETLEASE", 1024, 0, { "arg", ARG_INT }),
    FCNTL("F_GETLEASE", 1025, 0, { 0 }),
    FCNTL("F_NOTIFY", 1026, 0, { "arg", ARG_INT }),
    FCNTL("F_DUPFD_QUERY", 1027, 0, { "arg", ARG_FD }),
    FCNTL("F_CREATED_QUERY", 1028, 0, { 0 }),
    FCNTL("F_CANCELLK", 1029, 0, { 0 }),
    FCNTL("F_DUPFD_CLOEXEC", 1030, SYS_NEW_FD, { "arg", ARG_INT }),
    FCNTL("F_SETPIPE_SZ", 1031, 0, { "arg", ARG_INT }),
    FCNTL("F_GETPIPE_SZ", 1032, 0, { 0 }),
    FCNTL("F_ADD_SEALS", 1033, 0, { "arg", ARG_INT }),
    FCNTL("F_GET_SEALS", 1034, 0, { 0 }),
    FCNTL("F_GET_RW_HINT", 1035, 0, { "arg", ARG_OUT, .len = LEN_CONST(8) }),
    FCNTL("F_SET_RW_HINT", 1036, 0, { "arg", ARG_IN, .len = LEN_CONST(8) }),
    FCNTL("F_GET_FILE_RW_HINT", 1037, 0, { "arg", ARG_OUT, .len = LEN_CONST(8) }),
    FCNTL("F_SET_FILE_RW_HINT", 1038, 0, { "arg", ARG_IN, .len = LEN_CONST(8) }),
};
SUB(fcntl, 1);

// ---- futex -----------------------------------------------------------------

// Waking reads nothing: a program may free a futex before the wake-up it owes, so
// those that only wake take an address, not memory.
#define FUTEX_WORD { "futex", ARG_IN, .len = LEN_CONST(4) }
#define FUTEX_LOCK { "futex", ARG_INOUT, .len = LEN_CONST(4) }
#define FUTEX_TIMEOUT { "timeout", ARG_IN, .len = LEN_CONST(SIZE_timespec), .null_ok = true }
#define FUTEX(name, op, flags, word, ...) \
    { op, { name, flags, { word, { "op", ARG_INT }, __VA_ARGS__ } } }

static const SyscallSubRow futex_rows[] = {
    FUTEX("FUTEX_WAIT", 0, SYS_BLOCKS, FUTEX_WORD, { "val", ARG_INT }, FUTEX_TIMEOUT),
    { 1, { "FUTEX_WAKE", 0, { { "futex", ARG_PTR }, { "op", ARG_INT }, { "val", ARG_INT } } } },
    { 3, { "FUTEX_REQUEUE", 0, { { "futex", ARG_PTR }, { "op", ARG_INT }, { "val", ARG_INT },
        { "val2", ARG_INT }, { "futex2", ARG_PTR } } } },
    FUTEX("FUTEX_CMP_REQUEUE", 4, 0, FUTEX_WORD, { "val", ARG_INT }, { "val2", ARG_INT },
          { "futex2", ARG_PTR }, { "val3", ARG_INT }),
    { 5, { "FUTEX_WAKE_OP", 0, { { "futex", ARG_PTR }, { "op", ARG_INT }, { "val", ARG_INT },
        { "val2", ARG_INT }, { "futex2", ARG_INOUT, .len = LEN_CONST(4) },
        { "val3", ARG_INT } } } },
    FUTEX("FUTEX_LOCK_PI", 6, SYS_BLOCKS, FUTEX_LOCK, { "val", ARG_UNUSED }, FUTEX_TIMEOUT),
    FUTEX("FUTEX_UNLOCK_PI", 7, 0, FUTEX_LOCK, { 0 }),
    FUTEX("FUTEX_TRYLOCK_PI", 8, 0, FUTEX_LOCK, { 0 }),
    FUTEX("FUTEX_WAIT_BITSET", 9, SYS_BLOCKS, FUTEX_WORD, { "val", ARG_INT }, FUTEX_TIMEOUT,
          { "futex2", ARG_UNUSED }, { "val3", ARG_INT }),
    { 10, { "FUTEX_WAKE_BITSET", 0, { { "futex", ARG_PTR }, { "op", ARG_INT },
        { "val", ARG_INT }, { "timeout", ARG_UNUSED }, { "futex2", ARG_UNUSED },
        { "val3", ARG_INT } } } },
    FUTEX("FUTEX_WAIT_REQUEUE_PI", 11, SYS_BLOCKS, FUTEX_WORD, { "val", ARG_INT }, FUTEX_TIMEOUT,
          { "futex2", ARG_INOUT, .len = LEN_CONST(4) }),
    FUTEX("FUTEX_CMP_REQUEUE_PI", 12, 0, FUTEX_WORD, { "val", ARG_INT }, { "val2", ARG_INT },
          { "futex2", ARG_INOUT, .len = LEN_CONST(4) }, { "val3", ARG_INT }),
    FUTEX("FUTEX_LOCK_PI2", 13, SYS_BLOCKS, FUTEX_LOCK, { "val", ARG_UNUSED }, FUTEX_TIMEOUT),
};
// Without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const SyscallSub sub_futex = {
    "futex", .arg = 1, .mask = 0x7f, .count = ARRAY_LEN(futex_rows), .rows = futex_rows,
};

// ---- System V --------------------------------------------------------------

#define SHMCTL(name, cmd, ...) \
    { cmd, { name, 0, { { "shmid", ARG_INT }, { "cmd", ARG_INT }, { __VA_ARGS__ } } } }

static const SyscallSubRow shmctl_rows[] = {
    SHMCTL("IPC_RMID", 0, 0),
    SHMCTL("IPC_SET", 1, "IPC_SET, arg.buf", ARG_IN, .len = LEN_CONST(SIZE_shmid_ds)),
    SHMCTL("IPC_STAT", 2, "IPC_STAT, arg.buf", ARG_OUT, .len = LEN_CONST(SIZE_shmid_ds)),
    SHMCTL("IPC_INFO", 3, "IPC_INFO, buf", ARG_OUT, .len = LEN_CONST(SIZE_shminfo)),
    SHMCTL("SHM_LOCK", 11, 0),
    SHMCTL("SHM_UNLOCK", 12, 0),
    SHMCTL("SHM_STAT", 13, "SHM_STAT, buf", ARG_OUT, .len = LEN_CONST(SIZE_shmid_ds)),
    SHMCTL("SHM_INFO", 14, "SHM_INFO, buf", ARG_OUT, .len = LEN_CONST(SIZE_shm_info)),
    SHMCTL("SHM_STAT_ANY", 15, "SHM_STAT_ANY, buf", ARG_OUT, .len = LEN_CONST(SIZE_shmid_ds)),
};
SUB(shmctl, 1);

#define SEMCTL(name, cmd, ...) \
    { cmd, { name, 0, { { "semid", ARG_INT }, { "semnum", ARG_INT }, { "cmd", ARG_INT }, \
        { __VA_ARGS__ } } } }

static const SyscallSubRow semctl_rows[] = {
    SEMCTL("IPC_RMID", 0, 0),
    SEMCTL("IPC_SET", 1, "IPC_SET, arg.buf", ARG_IN, .len = LEN_CONST(SIZE_semid_ds)),
    SEMCTL("IPC_STAT", 2, "IPC_STAT, arg.buf", ARG_OUT, .len = LEN_CONST(SIZE_semid_ds)),
    SEMCTL("IPC_INFO", 3, "IPC_INFO, arg.buf", ARG_OUT, .len = LEN_CONST(SIZE_seminfo)),
    SEMCTL("GETPID", 11, 0),
    SEMCTL("GETVAL", 12, 0),
    SEMCTL("GETALL", 13, "IPC_GETALL, arg.array", ARG_OUT, .len = LEN_OF_SEMAPHORES(0)),
    SEMCTL("GETNCNT", 14, 0),
    SEMCTL("GETZCNT", 15, 0),
    SEMCTL("SETVAL", 16, "arg", ARG_INT),
    SEMCTL("SETALL", 17, "IPC_SETALL, arg.array", ARG_IN, .len = LEN_OF_SEMAPHORES(0)),
    SEMCTL("SEM_STAT", 18, "SEM_STAT, arg.buf", ARG_OUT, .len = LEN_CONST(SIZE_semid_ds)),
    SEMCTL("SEM_INFO", 19, "IPC_INFO, arg.buf", ARG_OUT, .len = LEN_CONST(SIZE_seminfo)),
    SEMCTL("SEM_STAT_ANY", 20, "SEM_STAT_ANY, arg.buf", ARG_OUT,
           .len = LEN_CONST(SIZE_semid_ds)),
};
SUB(semctl, 2);

#define MSGCTL(name, cmd, ...) \
    { cmd, { name, 0, { { "msqid", ARG_INT }, { "cmd", ARG_INT }, { __VA_ARGS__ } } } }

static const SyscallSubRow msgctl_rows[] = {
    MSGCTL("IPC_RMID", 0, 0),
    MSGCTL("IPC_SET", 1, "IPC_SET, arg.buf", ARG_IN, .len = LEN_CONST(SIZE_msqid_ds)),
    MSGCTL("IPC_STAT", 2, "IPC_STAT, buf", ARG_OUT, .len = LEN_CONST(SIZE_msqid_ds)),
    MSGCTL("IPC_INFO", 3, "IPC_INFO, buf", ARG_OUT, .len = LEN_CONST(SIZE_msginfo)),
    MSGCTL("MSG_STAT", 11, "MSG_STAT, buf", ARG_OUT, .len = LEN_CONST(SIZE_msqid_ds)),
    MSGCTL("MSG_INFO", 12, "MSG_INFO, buf", ARG_OUT, .len = LEN_CONST(SIZE_msginfo)),
    MSGCTL("MSG_STAT_ANY", 13, "MSG_STAT_ANY, buf", ARG_OUT, .len = LEN_CONST(SIZE_msqid_ds)),
};
SUB(msgctl, 1);

// ---- Keys ------------------------------------------------------------------

#define KEYCTL(name, option, ...) { option, { name, 0, { { "option", ARG_INT }, __VA_ARGS__ } } }
#define KEYCTL_PKEY(name, option) \
    KEYCTL(name, option, { name ", params", ARG_IN, .len = LEN_CONST(SIZE_keyctl_pkey_params) }, \
           { name ", info", ARG_STR }, \
           { name ", in", ARG_IN, .len = LEN_AT_ARG_OFFSET(1, 4) }, \
           { name ", out", ARG_OUT, .len = LEN_AT_ARG_OFFSET(1, 8), .wrote = LEN_OF_RESULT })

static const SyscallSubRow keyctl_rows[] = {
    KEYCTL("KEYCTL_GET_KEYRING_ID", 0, { "id", ARG_INT }, { "create", ARG_INT }),
    KEYCTL("KEYCTL_JOIN_SESSION_KEYRING", 1,
           { "KEYCTL_JOIN_SESSION_KEYRING, name", ARG_STR, .null_ok = true }),
    KEYCTL("KEYCTL_UPDATE", 2, { "key", ARG_INT },
           { "KEYCTL_UPDATE, payload", ARG_IN, .len = LEN_OF_ARG(3) },
           { "plen", ARG_SIZE }),
    KEYCTL("KEYCTL_REVOKE", 3, { "id", ARG_INT }),
    KEYCTL("KEYCTL_CHOWN", 4, { "id", ARG_INT }, { "uid", ARG_INT }, { "gid", ARG_INT }),
    KEYCTL("KEYCTL_SETPERM", 5, { "id", ARG_INT }, { "perm", ARG_INT }),
    KEYCTL("KEYCTL_DESCRIBE", 6, { "keyid", ARG_INT },
           { "KEYCTL_DESCRIBE, buffer", ARG_OUT, .len = LEN_OF_ARG(3),
             .wrote = LEN_OF_RESULT_IF_IT_FITS, .null_ok = true },
           { "buflen", ARG_SIZE }),
    KEYCTL("KEYCTL_CLEAR", 7, { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_LINK", 8, { "keyring", ARG_INT }, { "key", ARG_INT }),
    KEYCTL("KEYCTL_UNLINK", 9, { "keyring", ARG_INT }, { "key", ARG_INT }),
    KEYCTL("KEYCTL_SEARCH", 10, { "keyring", ARG_INT }, { "KEYCTL_SEARCH, type", ARG_STR },
           { "KEYCTL_SEARCH, description", ARG_STR }, { "dest", ARG_INT }),
    KEYCTL("KEYCTL_READ", 11, { "keyid", ARG_INT },
           { "KEYCTL_READ, buffer", ARG_OUT, .len = LEN_OF_ARG(3),
             .wrote = LEN_OF_RESULT_IF_IT_FITS, .null_ok = true },
           { "buflen", ARG_SIZE }),
    KEYCTL("KEYCTL_INSTANTIATE", 12, { "key", ARG_INT },
           { "KEYCTL_INSTANTIATE, payload", ARG_IN, .len = LEN_OF_ARG(3), .null_ok = true },
           { "plen", ARG_SIZE }, { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_NEGATE", 13, { "key", ARG_INT }, { "timeout", ARG_INT },
           { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_SET_REQKEY_KEYRING", 14, { "reqkey_defl", ARG_INT }),
    KEYCTL("KEYCTL_SET_TIMEOUT", 15, { "key", ARG_INT }, { "timeout", ARG_INT }),
    KEYCTL("KEYCTL_ASSUME_AUTHORITY", 16, { "key", ARG_INT }),
    KEYCTL("KEYCTL_GET_SECURITY", 17, { "key", ARG_INT },
           { "KEYCTL_GET_SECURITY, buffer", ARG_OUT, .len = LEN_OF_ARG(3), .wrote = LEN_OF_RESULT,
             .null_ok = true },
           { "buflen", ARG_SIZE }),
    { 18, { "KEYCTL_SESSION_TO_PARENT", 0, { { "option", ARG_INT } } } },
    KEYCTL("KEYCTL_REJECT", 19, { "key", ARG_INT }, { "timeout", ARG_INT }, { "error", ARG_INT },
           { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_INSTANTIATE_IOV", 20, { "key", ARG_INT },
           { "KEYCTL_INSTANTIATE_IOV, payload", ARG_IN, .null_ok = true,
             .len = LEN_OF_ARG_TIMES(3, SIZE_iovec), .index = INDEX_NUMBER,
             .type = &type_iovec_in },
           { "count", ARG_INT }, { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_INVALIDATE", 21, { "key", ARG_INT }),
    KEYCTL("KEYCTL_GET_PERSISTENT", 22, { "uid", ARG_INT }, { "keyring", ARG_INT }),
    KEYCTL("KEYCTL_DH_COMPUTE", 23, { "KEYCTL_DH_COMPUTE, params", ARG_IN, .len = LEN_CONST(12) },
           { "KEYCTL_DH_COMPUTE, buffer", ARG_OUT, .len = LEN_OF_ARG(3), .wrote = LEN_OF_RESULT,
             .null_ok = true },
           { "buflen", ARG_SIZE },
           { "KEYCTL_DH_COMPUTE, kdf", ARG_IN, .len = LEN_CONST(SIZE_keyctl_kdf_params),
             .null_ok = true, .type = &type_keyctl_kdf }),
    KEYCTL("KEYCTL_PKEY_QUERY", 24, { "key", ARG_INT }, { "reserved", ARG_LONG },
           { "KEYCTL_PKEY_QUERY, info", ARG_STR },
           { "KEYCTL_PKEY_QUERY, result", ARG_OUT, .len = LEN_CONST(SIZE_keyctl_pkey_query) }),
    KEYCTL_PKEY("KEYCTL_PKEY_ENCRYPT", 25),
    KEYCTL_PKEY("KEYCTL_PKEY_DECRYPT", 26),
    KEYCTL_PKEY("KEYCTL_PKEY_SIGN", 27),
    KEYCTL("KEYCTL_PKEY_VERIFY", 28,
           { "KEYCTL_PKEY_VERIFY, params", ARG_IN, .len = LEN_CONST(SIZE_keyctl_pkey_params) },
           { "KEYCTL_PKEY_VERIFY, info", ARG_STR },
           { "KEYCTL_PKEY_VERIFY, in", ARG_IN, .len = LEN_AT_ARG_OFFSET(1, 4) },
           { "KEYCTL_PKEY_VERIFY, in2", ARG_IN, .len = LEN_AT_ARG_OFFSET(1, 8) }),
    KEYCTL("KEYCTL_RESTRICT_KEYRING", 29, { "keyring", ARG_INT },
           { "KEYCTL_RESTRICT_KEYRING, type", ARG_STR, .null_ok = true },
           { "KEYCTL_RESTRICT_KEYRING, restriction", ARG_STR, .null_ok = true }),
    KEYCTL("KEYCTL_MOVE", 30, { "key", ARG_INT }, { "from", ARG_INT }, { "to", ARG_INT },
           { "flags", ARG_INT }),
    KEYCTL("KEYCTL_CAPABILITIES", 31,
           { "KEYCTL_CAPABILITIES, buffer", ARG_OUT, .len = LEN_OF_ARG(2) },
           { "buflen", ARG_SIZE }),
    KEYCTL("KEYCTL_WATCH_KEY", 32, { "key", ARG_INT }, { "fd", ARG_FD }, { "id", ARG_INT }),
};
SUB(keyctl, 0);

// ---- Quotas ----------------------------------------------------------------

// The command is shifted left by 8; the low byte is the kind of quota.
#define QUOTA_ROWS(FIRST) \
    { 0x800001, { "Q_SYNC", 0, { FIRST } } }, \
    { 0x800002, { "Q_QUOTAON", 0, { FIRST, { "addr", ARG_PATH } } } }, \
    { 0x800003, { "Q_QUOTAOFF", 0, { FIRST } } }, \
    { 0x800004, { "Q_GETFMT", 0, { FIRST, { "addr", ARG_OUT, .len = LEN_CONST(4) } } } }, \
    { 0x800005, { "Q_GETINFO", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_dqinfo) } } } }, \
    { 0x800006, { "Q_SETINFO", 0, { FIRST, \
        { "addr", ARG_IN, .len = LEN_CONST(SIZE_dqinfo) } } } }, \
    { 0x800007, { "Q_GETQUOTA", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_dqblk) } } } }, \
    { 0x800008, { "Q_SETQUOTA", 0, { FIRST, \
        { "addr", ARG_IN, .len = LEN_CONST(SIZE_dqblk) } } } }, \
    { 0x800009, { "Q_GETNEXTQUOTA", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_nextdqblk) } } } }, \
    { 0x5801, { "Q_XQUOTAON", 0, { FIRST, { "addr", ARG_IN, .len = LEN_CONST(4) } } } }, \
    { 0x5802, { "Q_XQUOTAOFF", 0, { FIRST, { "addr", ARG_IN, .len = LEN_CONST(4) } } } }, \
    { 0x5803, { "Q_XGETQUOTA", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_fs_disk_quota) } } } }, \
    { 0x5804, { "Q_XSETQLIM", 0, { FIRST, \
        { "addr", ARG_IN, .len = LEN_CONST(SIZE_fs_disk_quota) } } } }, \
    { 0x5805, { "Q_XGETQSTAT", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_fs_quota_stat) } } } }, \
    { 0x5806, { "Q_XQUOTARM", 0, { FIRST, { "addr", ARG_IN, .len = LEN_CONST(4) } } } }, \
    { 0x5807, { "Q_XQUOTASYNC", 0, { FIRST } } }, \
    { 0x5808, { "Q_XGETQSTATV", 0, { FIRST, \
        { "addr", ARG_INOUT, .len = LEN_CONST(SIZE_fs_quota_statv) } } } }, \
    { 0x5809, { "Q_XGETNEXTQUOTA", 0, { FIRST, \
        { "addr", ARG_OUT, .len = LEN_CONST(SIZE_fs_disk_quota) } } } },

#define QUOTACTL_ARGS \
    { "cmd", ARG_INT }, { "special", ARG_PATH, .null_ok = true }, { "id", ARG_INT }
#define QUOTACTL_FD_ARGS { "fd", ARG_FD }, { "cmd", ARG_INT }, { "id", ARG_INT }

static const SyscallSubRow quotactl_rows[] = { QUOTA_ROWS(QUOTACTL_ARGS) };
const SyscallSub sub_quotactl = {
    "quotactl", .arg = 0, .shift = 8, .mask = ~0u, .count = ARRAY_LEN(quotactl_rows),
    .rows = quotactl_rows,
};

static const SyscallSubRow quotactl_fd_rows[] = { QUOTA_ROWS(QUOTACTL_FD_ARGS) };
const SyscallSub sub_quotactl_fd = {
    "quotactl_fd", .arg = 1, .shift = 8, .mask = ~0u, .count = ARRAY_LEN(quotactl_fd_rows),
    .rows = quotactl_fd_rows,
};

// ---- Small ones ------------------------------------------------------------

#define SYSLOG_READ(name, type) \
    { type, { name, SYS_BLOCKS, { { "type", ARG_INT }, \
        { "bufp", ARG_OUT, .len = LEN_OF_ARG(2), .wrote = LEN_OF_RESULT }, { "len", ARG_INT } } } }

static const SyscallSubRow syslog_rows[] = {
    SYSLOG_READ("READ", 2),
    SYSLOG_READ("READ_ALL", 3),
    SYSLOG_READ("READ_CLEAR", 4),
    { 8, { "CONSOLE_LEVEL", 0, { { "type", ARG_INT }, { "bufp", ARG_UNUSED },
        { "len", ARG_INT } } } },
};
SUB(syslog, 0);

static const SyscallSubRow sysfs_rows[] = {
    { 1, { "name to index", 0, { { "option", ARG_INT }, { "fsname", ARG_STR } } } },
    // The buffer has no length: the name of a file system is short, and not known yet.
    { 2, { "index to name", 0, { { "option", ARG_INT }, { "fs_index", ARG_INT },
        { "buf", ARG_PTR } } } },
    { 3, { "count", 0, { { "option", ARG_INT } } } },
};
SUB(sysfs, 0);

#define LDT_ROW(func, name, kind, ...) \
    { func, { name, 0, { { "func", ARG_INT }, \
        { "ptr", kind, .len = LEN_OF_ARG(2), __VA_ARGS__ }, { "bytecount", ARG_SIZE } } } }

static const SyscallSubRow modify_ldt_rows[] = {
    LDT_ROW(0, "read", ARG_OUT, .wrote = LEN_OF_RESULT),
    LDT_ROW(1, "write old", ARG_IN, .null_ok = false),
    LDT_ROW(2, "read default", ARG_OUT, .wrote = LEN_OF_RESULT),
    LDT_ROW(0x11, "write", ARG_IN, .null_ok = false),
};
SUB(modify_ldt, 0);

// No filter: the program asks whether the kernel knows the flags.
static const SyscallSubRow seccomp_rows[] = {
    { 0, { "SECCOMP_SET_MODE_STRICT", 0, { { "op", ARG_INT }, { "flags", ARG_FLAGS } } } },
    { 1, { "SECCOMP_SET_MODE_FILTER", 0, { { "op", ARG_INT }, { "flags", ARG_FLAGS },
        { "uargs", ARG_IN, .len = LEN_CONST(SIZE_sock_fprog), .type = &type_sock_fprog,
          .null_ok = true } } } },
    { 2, { "SECCOMP_GET_ACTION_AVAIL", 0, { { "op", ARG_INT }, { "flags", ARG_FLAGS },
        { "uargs", ARG_IN, .len = LEN_CONST(4) } } } },
    { 3, { "SECCOMP_GET_NOTIF_SIZES", 0, { { "op", ARG_INT }, { "flags", ARG_FLAGS },
        { "uargs", ARG_OUT, .len = LEN_CONST(6) } } } },
};
SUB(seccomp, 0);

#define FSCONFIG(name, cmd, ...) \
    { cmd, { name, SYS_BLOCKS, { { "fd", ARG_FD }, { "cmd", ARG_INT }, __VA_ARGS__ } } }

static const SyscallSubRow fsconfig_rows[] = {
    FSCONFIG("FSCONFIG_SET_FLAG", 0, { "key", ARG_STR }),
    FSCONFIG("FSCONFIG_SET_STRING", 1, { "key", ARG_STR }, { "value", ARG_STR }),
    FSCONFIG("FSCONFIG_SET_BINARY", 2, { "key", ARG_STR },
             { "value", ARG_IN, .len = LEN_OF_ARG(4) }, { "aux", ARG_INT }),
    FSCONFIG("FSCONFIG_SET_PATH", 3, { "key", ARG_STR }, { "value", ARG_PATH },
             { "aux", ARG_DIRFD }),
    FSCONFIG("FSCONFIG_SET_PATH_EMPTY", 4, { "key", ARG_STR }, { "value", ARG_PATH },
             { "aux", ARG_DIRFD }),
    FSCONFIG("FSCONFIG_SET_FD", 5, { "key", ARG_STR }, { "value", ARG_UNUSED },
             { "aux", ARG_FD }),
    FSCONFIG("FSCONFIG_CMD_CREATE", 6, { 0 }),
    FSCONFIG("FSCONFIG_CMD_RECONFIGURE", 7, { 0 }),
    FSCONFIG("FSCONFIG_CMD_CREATE_EXCL", 8, { 0 }),
};
SUB(fsconfig, 1);

#define LANDLOCK(name, type, bytes) \
    { type, { name, 0, { { "ruleset_fd", ARG_FD }, { "rule_type", ARG_INT }, \
        { "rule_attr", ARG_IN, .len = LEN_CONST(bytes) }, { "flags", ARG_FLAGS } } } }

static const SyscallSubRow landlock_rule_rows[] = {
    LANDLOCK("LANDLOCK_RULE_PATH_BENEATH", 1, 12), // packed
    LANDLOCK("LANDLOCK_RULE_NET_PORT", 2, 16),
};
SUB(landlock_rule, 1);

#define KCMP_ARGS { "pid1", ARG_INT }, { "pid2", ARG_INT }, { "type", ARG_INT }

static const SyscallSubRow kcmp_rows[] = {
    { 0, { "KCMP_FILE", 0, { KCMP_ARGS, { "idx1", ARG_LONG }, { "idx2", ARG_LONG } } } },
    { 1, { "KCMP_VM", 0, { KCMP_ARGS } } },
    { 2, { "KCMP_FILES", 0, { KCMP_ARGS } } },
    { 3, { "KCMP_FS", 0, { KCMP_ARGS } } },
    { 4, { "KCMP_SIGHAND", 0, { KCMP_ARGS } } },
    { 5, { "KCMP_IO", 0, { KCMP_ARGS } } },
    { 6, { "KCMP_SYSVSEM", 0, { KCMP_ARGS } } },
    { 7, { "KCMP_EPOLL_TFD", 0, { KCMP_ARGS, { "idx1", ARG_LONG },
        { "idx2", ARG_IN, .len = LEN_CONST(12) } } } },
};
SUB(kcmp, 2);

#define HANDLE_ROW(key, name, mnt_id_bytes) \
    { key, { name, 0, { { "dfd", ARG_DIRFD }, { "name", ARG_PATH }, \
        { "handle", ARG_INOUT, .len = LEN_INSIDE_TIMES(0, 1, 8), \
          .on = ON_SUCCESS_OR_EOVERFLOW, .type = &type_file_handle }, \
        { "mnt_id", ARG_OUT, .len = LEN_CONST(mnt_id_bytes), .on = ON_SUCCESS_OR_EOVERFLOW }, \
        { "flag", ARG_FLAGS } } } }

// By AT_HANDLE_MNT_ID_UNIQUE.
static const SyscallSubRow name_to_handle_rows[] = {
    HANDLE_ROW(0, "mount id", 4),
    HANDLE_ROW(1, "unique mount id", 8),
};
const SyscallSub sub_name_to_handle = {
    "name_to_handle", .arg = 4, .mask = 1, .count = ARRAY_LEN(name_to_handle_rows),
    .rows = name_to_handle_rows,
};

// ---- io_uring --------------------------------------------------------------

#define ENTER_ARGS \
    { "fd", ARG_FD }, { "to_submit", ARG_INT }, { "min_complete", ARG_INT }, \
    { "flags", ARG_FLAGS }

// By IORING_ENTER_EXT_ARG.
static const SyscallSubRow io_uring_enter_rows[] = {
    { 0, { "signal mask", SYS_BLOCKS | SYS_SIGNAL, { ENTER_ARGS,
        { "sig", ARG_IN, .len = LEN_OF_ARG(5), .null_ok = true },
        { "sigsz", ARG_SIZE, .when = WHEN_ANY(4, ~0u) } } } },
    { 1, { "IORING_ENTER_EXT_ARG", SYS_BLOCKS | SYS_SIGNAL, { ENTER_ARGS,
        { "sig", ARG_IN, .len = LEN_OF_ARG(5), .null_ok = true,
          .type = &type_io_uring_enter_arg },
        { "sigsz", ARG_SIZE } } } },
};
const SyscallSub sub_io_uring_enter = {
    "io_uring_enter", .arg = 3, .shift = 3, .mask = 1, .count = ARRAY_LEN(io_uring_enter_rows),
    .rows = io_uring_enter_rows,
};

#define REGISTER(name, opcode, ...) \
    { opcode, { name, SYS_BLOCKS, { { "fd", ARG_FD }, { "opcode", ARG_INT }, \
        { "arg", __VA_ARGS__ }, { "nr_args", ARG_INT } } } }

static const SyscallSubRow io_uring_register_rows[] = {
    REGISTER("IORING_REGISTER_BUFFERS", 0, ARG_IN, .len = LEN_OF_ARG_TIMES(3, SIZE_iovec),
             .index = INDEX_NUMBER, .type = &type_io_uring_buffers),
    REGISTER("IORING_UNREGISTER_BUFFERS", 1, ARG_UNUSED),
    REGISTER("IORING_REGISTER_FILES", 2, ARG_IN, .len = LEN_OF_ARG_TIMES(3, 4)),
    REGISTER("IORING_UNREGISTER_FILES", 3, ARG_UNUSED),
    REGISTER("IORING_REGISTER_EVENTFD", 4, ARG_IN, .len = LEN_CONST(4)),
    REGISTER("IORING_UNREGISTER_EVENTFD", 5, ARG_UNUSED),
    REGISTER("IORING_REGISTER_FILES_UPDATE", 6, ARG_IN,
             .len = LEN_CONST(SIZE_io_uring_rsrc_update), .type = &type_io_uring_files_update),
    REGISTER("IORING_REGISTER_EVENTFD_ASYNC", 7, ARG_IN, .len = LEN_CONST(4)),
    REGISTER("IORING_REGISTER_PROBE", 8, ARG_INOUT,
             .len = { .rule = LEN_RULE_ARG, .arg = 3, .scale = SIZE_io_uring_probe_op,
                      .plus = 16 }),
    REGISTER("IORING_REGISTER_PERSONALITY", 9, ARG_UNUSED),
    REGISTER("IORING_UNREGISTER_PERSONALITY", 10, ARG_UNUSED),
    REGISTER("IORING_REGISTER_RESTRICTIONS", 11, ARG_IN, .len = LEN_OF_ARG_TIMES(3, 16)),
    REGISTER("IORING_REGISTER_ENABLE_RINGS", 12, ARG_UNUSED),
    REGISTER("IORING_REGISTER_FILES2", 13, ARG_IN, .len = LEN_OF_ARG(3)),
    REGISTER("IORING_REGISTER_FILES_UPDATE2", 14, ARG_IN, .len = LEN_OF_ARG(3)),
    REGISTER("IORING_REGISTER_BUFFERS2", 15, ARG_IN, .len = LEN_OF_ARG(3)),
    REGISTER("IORING_REGISTER_BUFFERS_UPDATE", 16, ARG_IN, .len = LEN_OF_ARG(3)),
    REGISTER("IORING_REGISTER_IOWQ_AFF", 17, ARG_IN, .len = LEN_OF_ARG(3)),
    REGISTER("IORING_UNREGISTER_IOWQ_AFF", 18, ARG_UNUSED),
    REGISTER("IORING_REGISTER_IOWQ_MAX_WORKERS", 19, ARG_INOUT, .len = LEN_CONST(8)),
    REGISTER("IORING_REGISTER_RING_FDS", 20, ARG_INOUT, .len = LEN_OF_ARG_TIMES(3, 16)),
    REGISTER("IORING_UNREGISTER_RING_FDS", 21, ARG_IN, .len = LEN_OF_ARG_TIMES(3, 16)),
    REGISTER("IORING_REGISTER_PBUF_RING", 22, ARG_INOUT, .len = LEN_CONST(40)),
    REGISTER("IORING_UNREGISTER_PBUF_RING", 23, ARG_IN, .len = LEN_CONST(40)),
    REGISTER("IORING_REGISTER_SYNC_CANCEL", 24, ARG_IN, .len = LEN_CONST(64)),
    REGISTER("IORING_REGISTER_FILE_ALLOC_RANGE", 25, ARG_IN, .len = LEN_CONST(16)),
    REGISTER("IORING_REGISTER_PBUF_STATUS", 26, ARG_INOUT, .len = LEN_CONST(40)),
    REGISTER("IORING_REGISTER_NAPI", 27, ARG_INOUT, .len = LEN_CONST(16)),
    REGISTER("IORING_UNREGISTER_NAPI", 28, ARG_OUT, .len = LEN_CONST(16), .null_ok = true),
    REGISTER("IORING_REGISTER_CLOCK", 29, ARG_IN, .len = LEN_CONST(16)),
    REGISTER("IORING_REGISTER_CLONE_BUFFERS", 30, ARG_IN, .len = LEN_CONST(32)),
    REGISTER("IORING_REGISTER_SEND_MSG_RING", 31, ARG_IN, .len = LEN_CONST(64)),
    REGISTER("IORING_REGISTER_ZCRX_IFQ", 32, ARG_INOUT, .len = LEN_CONST(96)),
    REGISTER("IORING_REGISTER_RESIZE_RINGS", 33, ARG_INOUT,
             .len = LEN_CONST(SIZE_io_uring_params), .type = &type_io_uring_params),
    REGISTER("IORING_REGISTER_MEM_REGION", 34, ARG_IN, .len = LEN_CONST(32)),
    REGISTER("IORING_REGISTER_QUERY", 35, ARG_INOUT, .len = LEN_CONST(40), .null_ok = true),
};
SUB(io_uring_register, 1);
