// SPDX-License-Identifier: MIT
//
// The sub-table of bpf: for each command the members of union bpf_attr that it uses.
// Keys and values of a map have sizes that only the map knows, so their pointers are
// taken as cookies; programs, licences, logs and paths are followed.
#include "engine/syscall/tables.h"

#define AT(at, bytes) .offset = (at), .size = (bytes)
#define INT_AT(name, at) { name, ARG_INT, AT(at, 4) }
#define PTR_AT(name, at) { name, ARG_PTR, AT(at, 8) }
#define LAYOUT(id, ...) \
    static const SyscallType type_##id = { #id, SIZE_bpf_attr, .is_single = true, \
        .fields = (const SyscallArg[]) { __VA_ARGS__, { 0 } } }

LAYOUT(map_create,
    INT_AT("->map_type", 0), INT_AT("->key_size", 4), INT_AT("->value_size", 8),
    INT_AT("->max_entries", 12), INT_AT("->map_flags", 16), INT_AT("->inner_map_fd", 20),
    INT_AT("->numa_node", 24), { "->map_name", ARG_TEXT, AT(28, 16) },
    INT_AT("->map_ifindex", 44));
LAYOUT(map_element,
    { "->map_fd", ARG_FD, AT(0, 4) }, PTR_AT("->key", 8), PTR_AT("->value", 16),
    { "->flags", ARG_LONG, AT(24, 8) });
LAYOUT(map_key, { "->map_fd", ARG_FD, AT(0, 4) }, PTR_AT("->key", 8));
LAYOUT(map_keys,
    { "->map_fd", ARG_FD, AT(0, 4) }, PTR_AT("->key", 8), PTR_AT("->next_key", 16));
LAYOUT(map_batch,
    PTR_AT("->batch.in_batch", 0), PTR_AT("->batch.out_batch", 8), PTR_AT("->batch.keys", 16),
    PTR_AT("->batch.values", 24),
    { "->batch.count", ARG_INT, AT(32, 4), .dir = DIR_INOUT, .on = ON_ALWAYS },
    { "->batch.map_fd", ARG_FD, AT(36, 4) }, { "->batch.elem_flags", ARG_LONG, AT(40, 8) },
    { "->batch.flags", ARG_LONG, AT(48, 8) });
// The verifier's log is most wanted when the call fails.
LAYOUT(prog_load,
    INT_AT("->prog_type", 0), INT_AT("->insn_cnt", 4),
    { "->insns", ARG_IN, AT(8, 8), .len = LEN_OF_ARG_TIMES(1, 8) },
    { "->license", ARG_STR, AT(16, 8) },
    INT_AT("->log_level", 24), INT_AT("->log_size", 28),
    { "->log_buf", ARG_OUT, AT(32, 8), .len = LEN_OF_ARG(5), .on = ON_ALWAYS, .null_ok = true },
    INT_AT("->kern_version", 40), INT_AT("->prog_flags", 44),
    { "->prog_name", ARG_TEXT, AT(48, 16) },
    INT_AT("->prog_ifindex", 64), INT_AT("->expected_attach_type", 68),
    INT_AT("->prog_btf_fd", 72), INT_AT("->func_info_rec_size", 76),
    { "->func_info", ARG_IN, AT(80, 8), .len = LEN_OF_ARGS(13, 15, 1), .null_ok = true },
    INT_AT("->func_info_cnt", 88), INT_AT("->line_info_rec_size", 92),
    { "->line_info", ARG_IN, AT(96, 8), .len = LEN_OF_ARGS(16, 18, 1), .null_ok = true },
    INT_AT("->line_info_cnt", 104));
LAYOUT(object,
    { "->pathname", ARG_PATH, AT(0, 8) }, { "->bpf_fd", ARG_INT, AT(8, 4) },
    INT_AT("->file_flags", 12));
LAYOUT(attach,
    INT_AT("->target_fd", 0), INT_AT("->attach_bpf_fd", 4), INT_AT("->attach_type", 8),
    INT_AT("->attach_flags", 12));
LAYOUT(test_run,
    { "->test.prog_fd", ARG_FD, AT(0, 4) },
    { "->test.retval", ARG_INT, AT(4, 4), .dir = DIR_OUT },
    INT_AT("->test.data_size_in", 8),
    { "->test.data_size_out", ARG_INT, AT(12, 4), .dir = DIR_INOUT },
    { "->test.data_in", ARG_IN, AT(16, 8), .len = LEN_OF_ARG(2), .null_ok = true },
    { "->test.data_out", ARG_OUT, AT(24, 8), .len = LEN_KEPT(3), .wrote = LEN_OF_ARG(3),
      .null_ok = true },
    INT_AT("->test.repeat", 32),
    { "->test.duration", ARG_INT, AT(36, 4), .dir = DIR_OUT },
    INT_AT("->test.ctx_size_in", 40),
    { "->test.ctx_size_out", ARG_INT, AT(44, 4), .dir = DIR_INOUT },
    { "->test.ctx_in", ARG_IN, AT(48, 8), .len = LEN_OF_ARG(8), .null_ok = true },
    { "->test.ctx_out", ARG_OUT, AT(56, 8), .len = LEN_KEPT(9), .wrote = LEN_OF_ARG(9),
      .null_ok = true });
LAYOUT(next_id, INT_AT("->start_id", 0), { "->next_id", ARG_INT, AT(4, 4), .dir = DIR_OUT });
LAYOUT(by_id, INT_AT("->id", 0));
// The kernel writes the shorter of its struct and the caller's, and says which in info_len.
LAYOUT(info,
    { "->info.bpf_fd", ARG_FD, AT(0, 4) },
    { "->info.info_len", ARG_INT, AT(4, 4), .dir = DIR_INOUT },
    { "->info.info", ARG_INOUT, AT(8, 8), .len = LEN_KEPT(1), .wrote = LEN_OF_ARG(1) });
LAYOUT(query,
    INT_AT("->query.target_fd", 0), INT_AT("->query.attach_type", 4),
    INT_AT("->query.query_flags", 8),
    { "->query.attach_flags", ARG_INT, AT(12, 4), .dir = DIR_OUT },
    { "->query.prog_ids", ARG_OUT, AT(16, 8), .len = LEN_KEPT_TIMES(5, 4),
      .wrote = LEN_OF_ARG_TIMES(5, 4), .null_ok = true },
    { "->query.prog_cnt", ARG_INT, AT(24, 4), .dir = DIR_INOUT, .on = ON_ALWAYS });
LAYOUT(raw_tracepoint,
    { "->raw_tracepoint.name", ARG_STR, AT(0, 8), .null_ok = true },
    { "->raw_tracepoint.prog_fd", ARG_FD, AT(8, 4) });
LAYOUT(btf_load,
    { "->btf", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(2) },
    { "->btf_log_buf", ARG_OUT, AT(8, 8), .len = LEN_OF_ARG(3), .on = ON_ALWAYS,
      .null_ok = true },
    INT_AT("->btf_size", 16), INT_AT("->btf_log_size", 20), INT_AT("->btf_log_level", 24));
LAYOUT(task_fd_query,
    INT_AT("->task_fd_query.pid", 0), INT_AT("->task_fd_query.fd", 4),
    INT_AT("->task_fd_query.flags", 8),
    { "->task_fd_query.buf_len", ARG_INT, AT(12, 4), .dir = DIR_INOUT },
    { "->task_fd_query.buf", ARG_OUT, AT(16, 8), .len = LEN_KEPT(3), .wrote = LEN_OF_ARG_PLUS(3, 1),
      .null_ok = true },
    { "->task_fd_query.prog_id", ARG_INT, AT(24, 24), .dir = DIR_OUT });
LAYOUT(link_create,
    INT_AT("->link_create.prog_fd", 0), INT_AT("->link_create.target_fd", 4),
    INT_AT("->link_create.attach_type", 8), INT_AT("->link_create.flags", 12));
LAYOUT(link_update,
    INT_AT("->link_update.link_fd", 0), INT_AT("->link_update.new_prog_fd", 4),
    INT_AT("->link_update.flags", 8), INT_AT("->link_update.old_prog_fd", 12));
LAYOUT(two_ints, INT_AT("->first", 0), INT_AT("->flags", 4));
LAYOUT(bind_map,
    INT_AT("->prog_bind_map.prog_fd", 0), INT_AT("->prog_bind_map.map_fd", 4),
    INT_AT("->prog_bind_map.flags", 8));
LAYOUT(stream_read,
    { "->prog_stream_read.stream_buf", ARG_OUT, AT(0, 8), .len = LEN_OF_ARG(1),
      .wrote = LEN_SPREAD },
    INT_AT("->prog_stream_read.stream_buf_len", 8), INT_AT("->prog_stream_read.stream_id", 12),
    INT_AT("->prog_stream_read.prog_fd", 16));

// The attributes are read up to `size`; some members are written back.
#define BPF(name, cmd, flags, layout) \
    { cmd, { name, flags, { { "cmd", ARG_INT }, \
        { "attr", ARG_IN, .len = LEN_OF_ARG(2), .type = &type_##layout }, \
        { "size", ARG_INT } } } }

static const SyscallSubRow bpf_rows[] = {
    BPF("BPF_MAP_CREATE", 0, SYS_NEW_FD, map_create),
    BPF("BPF_MAP_LOOKUP_ELEM", 1, 0, map_element),
    BPF("BPF_MAP_UPDATE_ELEM", 2, 0, map_element),
    BPF("BPF_MAP_DELETE_ELEM", 3, 0, map_key),
    BPF("BPF_MAP_GET_NEXT_KEY", 4, 0, map_keys),
    BPF("BPF_PROG_LOAD", 5, SYS_NEW_FD, prog_load),
    BPF("BPF_OBJ_PIN", 6, 0, object),
    BPF("BPF_OBJ_GET", 7, SYS_NEW_FD, object),
    BPF("BPF_PROG_ATTACH", 8, 0, attach),
    BPF("BPF_PROG_DETACH", 9, 0, attach),
    BPF("BPF_PROG_TEST_RUN", 10, 0, test_run),
    BPF("BPF_PROG_GET_NEXT_ID", 11, 0, next_id),
    BPF("BPF_MAP_GET_NEXT_ID", 12, 0, next_id),
    BPF("BPF_PROG_GET_FD_BY_ID", 13, SYS_NEW_FD, by_id),
    BPF("BPF_MAP_GET_FD_BY_ID", 14, SYS_NEW_FD, by_id),
    BPF("BPF_OBJ_GET_INFO_BY_FD", 15, 0, info),
    BPF("BPF_PROG_QUERY", 16, 0, query),
    BPF("BPF_RAW_TRACEPOINT_OPEN", 17, SYS_NEW_FD, raw_tracepoint),
    BPF("BPF_BTF_LOAD", 18, SYS_NEW_FD, btf_load),
    BPF("BPF_BTF_GET_FD_BY_ID", 19, SYS_NEW_FD, by_id),
    BPF("BPF_TASK_FD_QUERY", 20, 0, task_fd_query),
    BPF("BPF_MAP_LOOKUP_AND_DELETE_ELEM", 21, 0, map_element),
    BPF("BPF_MAP_FREEZE", 22, 0, by_id),
    BPF("BPF_BTF_GET_NEXT_ID", 23, 0, next_id),
    BPF("BPF_MAP_LOOKUP_BATCH", 24, 0, map_batch),
    BPF("BPF_MAP_LOOKUP_AND_DELETE_BATCH", 25, 0, map_batch),
    BPF("BPF_MAP_UPDATE_BATCH", 26, 0, map_batch),
    BPF("BPF_MAP_DELETE_BATCH", 27, 0, map_batch),
    BPF("BPF_LINK_CREATE", 28, SYS_NEW_FD, link_create),
    BPF("BPF_LINK_UPDATE", 29, 0, link_update),
    BPF("BPF_LINK_GET_FD_BY_ID", 30, SYS_NEW_FD, by_id),
    BPF("BPF_LINK_GET_NEXT_ID", 31, 0, next_id),
    BPF("BPF_ENABLE_STATS", 32, SYS_NEW_FD, by_id),
    BPF("BPF_ITER_CREATE", 33, SYS_NEW_FD, two_ints),
    BPF("BPF_LINK_DETACH", 34, 0, by_id),
    BPF("BPF_PROG_BIND_MAP", 35, 0, bind_map),
    BPF("BPF_TOKEN_CREATE", 36, SYS_NEW_FD, two_ints),
    BPF("BPF_PROG_STREAM_READ_BY_FD", 37, 0, stream_read),
};
const SyscallSub sub_bpf = {
    "bpf", .arg = 0, .mask = ~0u, .count = ARRAY_LEN(bpf_rows), .rows = bpf_rows,
};
