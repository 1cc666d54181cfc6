// SPDX-License-Identifier: MIT
//
// The sub-tables of calls by which a process is changed or watched, in the form of
// subtables.c: prctl, arch_prctl, ptrace.
#include "engine/syscall/tables.h"

// ---- prctl -----------------------------------------------------------------

#define PRCTL(name, option, ...) { option, { name, 0, { { "option", ARG_INT }, __VA_ARGS__ } } }
#define PRCTL_NONE(name, option) { option, { name, 0, { { "option", ARG_INT } } } }
#define PRCTL_VALUE(name, option, arg) PRCTL(name, option, { arg, ARG_LONG })
#define PRCTL_OUT(name, option, arg, size) \
    PRCTL(name, option, { arg, ARG_OUT, .len = LEN_CONST(size) })

static const SyscallSubRow prctl_rows[] = {
    PRCTL_VALUE("PR_SET_PDEATHSIG", 1, "signal"),
    PRCTL_OUT("PR_GET_PDEATHSIG", 2, "get-death-signal", 4),
    PRCTL_NONE("PR_GET_DUMPABLE", 3),
    PRCTL_VALUE("PR_SET_DUMPABLE", 4, "dump"),
    PRCTL_OUT("PR_GET_UNALIGN", 5, "get-unalign", 4),
    PRCTL_VALUE("PR_SET_UNALIGN", 6, "unalign"),
    PRCTL_NONE("PR_GET_KEEPCAPS", 7),
    PRCTL_VALUE("PR_SET_KEEPCAPS", 8, "caps"),
    PRCTL_OUT("PR_GET_FPEMU", 9, "get-fpemu", 4),
    PRCTL_VALUE("PR_SET_FPEMU", 10, "fpemu"),
    PRCTL_OUT("PR_GET_FPEXC", 11, "get-fpexc", 4),
    PRCTL_VALUE("PR_SET_FPEXC", 12, "fpexc"),
    PRCTL_NONE("PR_GET_TIMING", 13),
    PRCTL_VALUE("PR_SET_TIMING", 14, "timing"),
    PRCTL("PR_SET_NAME", 15, { "set-name", ARG_STR }),
    PRCTL_OUT("PR_GET_NAME", 16, "get-name", 16),
    PRCTL_OUT("PR_GET_ENDIAN", 19, "get-endian", 4),
    PRCTL_VALUE("PR_SET_ENDIAN", 20, "endian"),
    PRCTL_NONE("PR_GET_SECCOMP", 21),
    PRCTL("PR_SET_SECCOMP", 22, { "mode", ARG_LONG },
          { "filter", ARG_IN, .len = LEN_CONST(SIZE_sock_fprog), .when = WHEN_IS(1, 2),
            .type = &type_sock_fprog, .null_ok = true }), // "is it there?"
    PRCTL_VALUE("PR_CAPBSET_READ", 23, "cap"),
    PRCTL_VALUE("PR_CAPBSET_DROP", 24, "cap"),
    PRCTL_OUT("PR_GET_TSC", 25, "get-tsc", 4),
    PRCTL_VALUE("PR_SET_TSC", 26, "tsc"),
    PRCTL_NONE("PR_GET_SECUREBITS", 27),
    PRCTL_VALUE("PR_SET_SECUREBITS", 28, "bits"),
    PRCTL_VALUE("PR_SET_TIMERSLACK", 29, "slack"),
    PRCTL_NONE("PR_GET_TIMERSLACK", 30),
    PRCTL_NONE("PR_TASK_PERF_EVENTS_DISABLE", 31),
    PRCTL_NONE("PR_TASK_PERF_EVENTS_ENABLE", 32),
    PRCTL("PR_MCE_KILL", 33, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }),
    PRCTL_NONE("PR_MCE_KILL_GET", 34),
    PRCTL("PR_SET_MM", 35, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }, { "arg4", ARG_LONG },
          { "arg5", ARG_LONG }),
    PRCTL_VALUE("PR_SET_CHILD_SUBREAPER", 36, "arg2"),
    PRCTL_OUT("PR_GET_CHILD_SUBREAPER", 37, "get-child-subreaper", 4),
    PRCTL_VALUE("PR_SET_NO_NEW_PRIVS", 38, "arg2"),
    PRCTL_NONE("PR_GET_NO_NEW_PRIVS", 39),
    PRCTL_OUT("PR_GET_TID_ADDRESS", 40, "get-tid-address", 8),
    PRCTL("PR_SET_THP_DISABLE", 41, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }),
    PRCTL_NONE("PR_GET_THP_DISABLE", 42),
    PRCTL("PR_CAP_AMBIENT", 47, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }),
    PRCTL_VALUE("PR_GET_SPECULATION_CTRL", 52, "arg2"),
    PRCTL("PR_SET_SPECULATION_CTRL", 53, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }),
    PRCTL_VALUE("PR_SET_TAGGED_ADDR_CTRL", 55, "arg2"),
    PRCTL_NONE("PR_GET_TAGGED_ADDR_CTRL", 56),
    PRCTL_VALUE("PR_SET_IO_FLUSHER", 57, "arg2"),
    PRCTL_NONE("PR_GET_IO_FLUSHER", 58),
    // The selector byte is read at every later system call, not now.
    PRCTL("PR_SET_SYSCALL_USER_DISPATCH", 59, { "arg2", ARG_LONG }, { "arg3", ARG_LONG },
          { "arg4", ARG_LONG }, { "arg5", ARG_PTR }),
    PRCTL("PR_SCHED_CORE", 62, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }, { "arg4", ARG_LONG },
          { "arg5", ARG_OUT, .len = LEN_CONST(8), .when = WHEN_IS(1, 0) }),
    PRCTL_VALUE("PR_SET_MDWE", 65, "arg2"),
    PRCTL_NONE("PR_GET_MDWE", 66),
    PRCTL_VALUE("PR_SET_MEMORY_MERGE", 67, "arg2"),
    PRCTL_NONE("PR_GET_MEMORY_MERGE", 68),
    PRCTL_VALUE("PR_TIMER_CREATE_RESTORE_IDS", 77, "arg2"),
    PRCTL("PR_FUTEX_HASH", 78, { "arg2", ARG_LONG }, { "arg3", ARG_LONG }, { "arg4", ARG_LONG }),
    PRCTL("PR_SET_VMA", 0x53564d41, { "arg2", ARG_LONG }, { "arg3", ARG_PTR },
          { "arg4", ARG_SIZE }, { "arg5", ARG_STR, .null_ok = true }),
    PRCTL("PR_GET_AUXV", 0x41555856,
          { "get-auxv", ARG_OUT, .len = LEN_OF_ARG(2), .wrote = LEN_OF_RESULT },
          { "arg3", ARG_SIZE }),
    PRCTL_VALUE("PR_SET_PTRACER", 0x59616d61, "arg2"),
};
SUB(prctl, 0);

#define ARCH_OUT(name, option) \
    { option, { name, 0, { { "option", ARG_INT }, \
        { "addr", ARG_OUT, .len = LEN_CONST(8) } } } }
#define ARCH_VALUE(name, option) \
    { option, { name, 0, { { "option", ARG_INT }, { "arg2", ARG_LONG } } } }

static const SyscallSubRow arch_prctl_rows[] = {
    ARCH_VALUE("ARCH_SET_GS", 0x1001),
    ARCH_VALUE("ARCH_SET_FS", 0x1002),
    ARCH_OUT("ARCH_GET_FS", 0x1003),
    ARCH_OUT("ARCH_GET_GS", 0x1004),
    ARCH_VALUE("ARCH_GET_CPUID", 0x1011),
    ARCH_VALUE("ARCH_SET_CPUID", 0x1012),
    ARCH_OUT("ARCH_GET_XCOMP_SUPP", 0x1021),
    ARCH_OUT("ARCH_GET_XCOMP_PERM", 0x1022),
    ARCH_VALUE("ARCH_REQ_XCOMP_PERM", 0x1023),
    ARCH_OUT("ARCH_GET_XCOMP_GUEST_PERM", 0x1024),
    ARCH_VALUE("ARCH_REQ_XCOMP_GUEST_PERM", 0x1025),
    ARCH_VALUE("ARCH_MAP_VDSO_X32", 0x2001),
    ARCH_VALUE("ARCH_MAP_VDSO_32", 0x2002),
    ARCH_VALUE("ARCH_MAP_VDSO_64", 0x2003),
    ARCH_OUT("ARCH_GET_UNTAG_MASK", 0x4001),
    ARCH_VALUE("ARCH_ENABLE_TAGGED_ADDR", 0x4002),
    ARCH_OUT("ARCH_GET_MAX_TAG_BITS", 0x4003),
    ARCH_VALUE("ARCH_FORCE_TAGGED_SVA", 0x4004),
    ARCH_VALUE("ARCH_SHSTK_ENABLE", 0x5001),
    ARCH_VALUE("ARCH_SHSTK_DISABLE", 0x5002),
    ARCH_VALUE("ARCH_SHSTK_LOCK", 0x5003),
    ARCH_VALUE("ARCH_SHSTK_UNLOCK", 0x5004),
    ARCH_OUT("ARCH_SHSTK_STATUS", 0x5005),
};
SUB(arch_prctl, 0);

// ---- ptrace ----------------------------------------------------------------

#define PTRACE(name, request, ...) \
    { request, { name, 0, { { "request", ARG_LONG }, { "pid", ARG_LONG }, __VA_ARGS__ } } }
#define PTRACE_VALUES(name, request) \
    PTRACE(name, request, { "addr", ARG_LONG }, { "data", ARG_LONG })
#define PTRACE_DATA(name, request, ...) \
    PTRACE(name, request, { "addr", ARG_LONG }, { __VA_ARGS__ })

static const SyscallSubRow ptrace_rows[] = {
    { 0, { "PTRACE_TRACEME", 0, { { "request", ARG_LONG } } } },
    PTRACE_DATA("PTRACE_PEEKTEXT", 1, "peek", ARG_OUT, .len = LEN_CONST(8)),
    PTRACE_DATA("PTRACE_PEEKDATA", 2, "peek", ARG_OUT, .len = LEN_CONST(8)),
    PTRACE_DATA("PTRACE_PEEKUSR", 3, "peek", ARG_OUT, .len = LEN_CONST(8)),
    PTRACE_VALUES("PTRACE_POKETEXT", 4),
    PTRACE_VALUES("PTRACE_POKEDATA", 5),
    PTRACE_VALUES("PTRACE_POKEUSR", 6),
    PTRACE_VALUES("PTRACE_CONT", 7),
    PTRACE_VALUES("PTRACE_KILL", 8),
    PTRACE_VALUES("PTRACE_SINGLESTEP", 9),
    PTRACE_DATA("PTRACE_GETREGS", 12, "getregs", ARG_OUT, .len = LEN_CONST(SIZE_user_regs)),
    PTRACE_DATA("PTRACE_SETREGS", 13, "setregs", ARG_IN, .len = LEN_CONST(SIZE_user_regs)),
    PTRACE_DATA("PTRACE_GETFPREGS", 14, "getfpregs", ARG_OUT,
                .len = LEN_CONST(SIZE_user_fpregs)),
    PTRACE_DATA("PTRACE_SETFPREGS", 15, "setfpregs", ARG_IN,
                .len = LEN_CONST(SIZE_user_fpregs)),
    PTRACE_VALUES("PTRACE_ATTACH", 16),
    PTRACE_VALUES("PTRACE_DETACH", 17),
    PTRACE_VALUES("PTRACE_OLDSETOPTIONS", 21),
    PTRACE_VALUES("PTRACE_SYSCALL", 24),
    PTRACE_DATA("PTRACE_GET_THREAD_AREA", 25, "get_thread_area", ARG_OUT,
                .len = LEN_CONST(SIZE_user_desc)),
    PTRACE_DATA("PTRACE_SET_THREAD_AREA", 26, "set_thread_area", ARG_IN,
                .len = LEN_CONST(SIZE_user_desc)),
    PTRACE("PTRACE_ARCH_PRCTL", 30, { "addr", ARG_PTR }, { "data", ARG_LONG }),
    PTRACE_VALUES("PTRACE_SYSEMU", 31),
    PTRACE_VALUES("PTRACE_SYSEMU_SINGLESTEP", 32),
    PTRACE_VALUES("PTRACE_SINGLEBLOCK", 33),
    PTRACE_VALUES("PTRACE_SETOPTIONS", 0x4200),
    PTRACE_DATA("PTRACE_GETEVENTMSG", 0x4201, "geteventmsg", ARG_OUT, .len = LEN_CONST(8)),
    PTRACE_DATA("PTRACE_GETSIGINFO", 0x4202, "getsiginfo", ARG_OUT,
                .len = LEN_CONST(SIZE_siginfo)),
    PTRACE_DATA("PTRACE_SETSIGINFO", 0x4203, "setsiginfo", ARG_IN,
                .len = LEN_CONST(SIZE_siginfo)),
    PTRACE_DATA("PTRACE_GETREGSET", 0x4204, "getregset", ARG_INOUT,
                .len = LEN_CONST(SIZE_iovec), .type = &type_regset_get),
    PTRACE_DATA("PTRACE_SETREGSET", 0x4205, "setregset", ARG_INOUT,
                .len = LEN_CONST(SIZE_iovec), .type = &type_regset_set),
    PTRACE_VALUES("PTRACE_SEIZE", 0x4206),
    PTRACE_VALUES("PTRACE_INTERRUPT", 0x4207),
    PTRACE_VALUES("PTRACE_LISTEN", 0x4208),
    PTRACE("PTRACE_PEEKSIGINFO", 0x4209, { "peeksiginfo args", ARG_IN, .len = LEN_CONST(16) },
           { "peeksiginfo", ARG_OUT,
             .len = { .rule = LEN_RULE_AT_ARG, .arg = 2, .other = 12, .scale = SIZE_siginfo },
             .wrote = LEN_OF_RESULT_TIMES(SIZE_siginfo) }),
    PTRACE("PTRACE_GETSIGMASK", 0x420a, { "addr", ARG_SIZE },
           { "getsigmask", ARG_OUT, .len = LEN_OF_ARG(2) }),
    PTRACE("PTRACE_SETSIGMASK", 0x420b, { "addr", ARG_SIZE },
           { "setsigmask", ARG_IN, .len = LEN_OF_ARG(2) }),
    // BPF_MAXINSNS instructions at most; how many is known only by the result.
    PTRACE_DATA("PTRACE_SECCOMP_GET_FILTER", 0x420c, "seccomp_get_filter", ARG_PTR),
    PTRACE("PTRACE_SECCOMP_GET_METADATA", 0x420d, { "addr", ARG_SIZE },
           { "seccomp_get_metadata", ARG_INOUT, .len = LEN_OF_ARG(2), .wrote = LEN_OF_RESULT }),
    PTRACE("PTRACE_GET_SYSCALL_INFO", 0x420e, { "addr", ARG_SIZE },
           { "get_syscall_info", ARG_OUT, .len = LEN_OF_ARG(2), .wrote = LEN_OF_RESULT }),
    PTRACE("PTRACE_GET_RSEQ_CONFIGURATION", 0x420f, { "addr", ARG_SIZE },
           { "get_rseq_configuration", ARG_OUT, .len = LEN_OF_ARG(2), .wrote = LEN_OF_RESULT }),
    PTRACE("PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG", 0x4210, { "addr", ARG_SIZE },
           { "set_syscall_user_dispatch", ARG_IN, .len = LEN_OF_ARG(2) }),
    PTRACE("PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG", 0x4211, { "addr", ARG_SIZE },
           { "get_syscall_user_dispatch", ARG_OUT, .len = LEN_OF_ARG(2) }),
    PTRACE("PTRACE_SET_SYSCALL_INFO", 0x4212, { "addr", ARG_SIZE },
           { "set_syscall_info", ARG_IN, .len = LEN_OF_ARG(2) }),
};
SUB(ptrace, 0);
