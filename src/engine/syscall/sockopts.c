// SPDX-License-Identifier: MIT
//
// The sub-tables of getsockopt and setsockopt, by level and option. An option is read
// and written as long as its length says, which the rows of the calls state; here are
// those that carry pointers, count in other units, or are read by getsockopt too.
#include "engine/syscall/tables.h"

#define KEY(level, option) ((u64)(level) << 32 | (option))
#define SOCKOPT_ARGS { "s", ARG_FD }, { "level", ARG_INT }, { "optname", ARG_INT }

enum { LEVEL_IP = 0, LEVEL_SOCKET = 1, LEVEL_TCP = 6, LEVEL_IPV6 = 41, LEVEL_SCTP = 132 };

#define SET_FILTER(name, level, option) \
    { KEY(level, option), { name, 0, { SOCKOPT_ARGS, \
        { "SOL_SOCKET, " name ", &optval", ARG_IN, .len = LEN_OF_ARG(4), \
          .type = &type_sock_fprog }, \
        { "optlen", ARG_INT } }, .speaks_as = "setsockopt" } }

static const SyscallSubRow setsockopt_rows[] = {
    SET_FILTER("SO_ATTACH_FILTER", LEVEL_SOCKET, 26),
    SET_FILTER("SO_ATTACH_REUSEPORT_CBPF", LEVEL_SOCKET, 51),
};
const SyscallSub sub_setsockopt = {
    "setsockopt", .arg = 1, .is_pair = true, .mask = ~0u, .count = ARRAY_LEN(setsockopt_rows),
    .rows = setsockopt_rows,
};

// The buffer says what is asked for.
#define GET_ASKING(name, level, option) \
    { KEY(level, option), { name, 0, { SOCKOPT_ARGS, \
        { "optval", ARG_INOUT, .len = LEN_AT_ARG(4), .wrote = LEN_AT_ARG_NOW(4) }, \
        { "optlen", ARG_INOUT, .len = LEN_CONST(4) } } } }

static const SyscallSubRow getsockopt_rows[] = {
    GET_ASKING("IP_MSFILTER", LEVEL_IP, 41),
    GET_ASKING("MCAST_MSFILTER", LEVEL_IP, 48),
    GET_ASKING("IPT_SO_GET_INFO", LEVEL_IP, 64),
    GET_ASKING("IPT_SO_GET_ENTRIES", LEVEL_IP, 65),
    GET_ASKING("IPT_SO_GET_REVISION_MATCH", LEVEL_IP, 66),
    GET_ASKING("IPT_SO_GET_REVISION_TARGET", LEVEL_IP, 67),
    // Counts instructions of 8 bytes.
    { KEY(LEVEL_SOCKET, 26), { "SO_GET_FILTER", 0, { SOCKOPT_ARGS,
        { "optval", ARG_OUT, .len = LEN_AT_ARG_TIMES(4, 8), .wrote = LEN_OF_RESULT_TIMES(8),
          .null_ok = true },
        { "optlen", ARG_INOUT, .len = LEN_CONST(4) } } } },
    GET_ASKING("TCP_ZEROCOPY_RECEIVE", LEVEL_TCP, 35),
    GET_ASKING("MCAST_MSFILTER", LEVEL_IPV6, 48),
    GET_ASKING("IP6T_SO_GET_INFO", LEVEL_IPV6, 64),
    GET_ASKING("IP6T_SO_GET_ENTRIES", LEVEL_IPV6, 65),
    GET_ASKING("IP6T_SO_GET_REVISION_MATCH", LEVEL_IPV6, 68),
    GET_ASKING("IP6T_SO_GET_REVISION_TARGET", LEVEL_IPV6, 69),
    GET_ASKING("SCTP_RTOINFO", LEVEL_SCTP, 0),
    GET_ASKING("SCTP_ASSOCINFO", LEVEL_SCTP, 1),
    GET_ASKING("SCTP_PEER_ADDR_PARAMS", LEVEL_SCTP, 9),
    GET_ASKING("SCTP_DEFAULT_SEND_PARAM", LEVEL_SCTP, 10),
    GET_ASKING("SCTP_STATUS", LEVEL_SCTP, 14),
    GET_ASKING("SCTP_GET_PEER_ADDR_INFO", LEVEL_SCTP, 15),
    GET_ASKING("SCTP_DELAYED_SACK", LEVEL_SCTP, 16),
    GET_ASKING("SCTP_CONTEXT", LEVEL_SCTP, 17),
    GET_ASKING("SCTP_GET_PEER_ADDRS", LEVEL_SCTP, 108),
    GET_ASKING("SCTP_GET_LOCAL_ADDRS", LEVEL_SCTP, 109),
    GET_ASKING("SCTP_SOCKOPT_CONNECTX3", LEVEL_SCTP, 111),
    GET_ASKING("SCTP_GET_ASSOC_STATS", LEVEL_SCTP, 112),
};
const SyscallSub sub_getsockopt = {
    "getsockopt", .arg = 1, .is_pair = true, .mask = ~0u, .count = ARRAY_LEN(getsockopt_rows),
    .rows = getsockopt_rows,
};
