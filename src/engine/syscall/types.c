// SPDX-License-Identifier: MIT
//
// Layouts of structs that are checked field by field: because they have padding
// that nobody initialises, fields that the kernel ignores or fills, or pointers to
// more memory. A struct without any of these needs no layout, only a size.
#include "engine/syscall/tables.h"

#define AT(at, bytes) .offset = (at), .size = (bytes)
#define FIELDS(...) (const SyscallArg[]) { __VA_ARGS__, { 0 } }

// ---- Time and signals ------------------------------------------------------

const SyscallType type_timeval_indexed = {
    "timeval", SIZE_timeval,
    .fields = FIELDS({ "", ARG_LONG, AT(0, 16) }),
};

const SyscallType type_itimerval = {
    "itimerval", SIZE_itimerval,
    .fields = FIELDS(
        { "&->it_interval", ARG_LONG, AT(0, 16) },
        { "&->it_value", ARG_LONG, AT(16, 16) }),
};

// The seconds are ignored beside UTIME_NOW and UTIME_OMIT.
const SyscallType type_utimens = {
    "timespec", SIZE_timespec,
    .fields = FIELDS(
        { ".tv_nsec", ARG_LONG, AT(8, 8) },
        { ".tv_sec", ARG_LONG, AT(0, 8), .when = WHEN_BELOW(0, 1000000000) }),
};

// Each bit of modes says that a member is to be set; all are written.
const SyscallType type_timex = {
    "timex", SIZE_timex,
    .fields = FIELDS(
        { "->modes", ARG_INT, AT(0, 4), .dir = DIR_IN },
        { "->offset", ARG_LONG, AT(8, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0001) },
        { "->freq", ARG_LONG, AT(16, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0002) },
        { "->maxerror", ARG_LONG, AT(24, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0004) },
        { "->esterror", ARG_LONG, AT(32, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0008) },
        { "->status", ARG_INT, AT(40, 4), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0010) },
        { "->constant", ARG_LONG, AT(48, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x00a0) },
        { "->time", ARG_LONG, AT(72, 16), .dir = DIR_IN, .when = WHEN_ANY(0, 0x0100) },
        { "->tick", ARG_LONG, AT(88, 8), .dir = DIR_IN, .when = WHEN_ANY(0, 0x4000) },
        { "", ARG_LONG, AT(0, SIZE_timex), .dir = DIR_OUT }),
};

// The kernel's order, not glibc's.
const SyscallType type_sigaction = {
    "sigaction", SIZE_sigaction,
    .fields = FIELDS(
        { "->sa_handler", ARG_PTR, AT(0, 8) },
        { "->sa_mask", ARG_LONG, AT(24, 8) },
        { "->sa_flags", ARG_LONG, AT(8, 8) },
        { "->sa_restorer", ARG_PTR, AT(16, 8), .when = WHEN_ANY(2, 0x04000000) }),
};

const SyscallType type_stack = {
    "stack_t", SIZE_stack, .is_whole = true,
    .fields = FIELDS(
        { ".ss_sp", ARG_PTR, AT(0, 8) },
        { ".ss_flags", ARG_FLAGS, AT(8, 4) },
        { ".ss_size", ARG_SIZE, AT(16, 8) }),
};

static const SyscallType type_sigevent_thread = {
    "sigevent", SIZE_sigevent,
    .fields = FIELDS({ ".sigev_notify_thread_id", ARG_INT, AT(16, 4) }),
};

const SyscallType type_sigevent = {
    "sigevent", SIZE_sigevent,
    .fields = FIELDS(
        { ".sigev_value", ARG_LONG, AT(0, 8) },
        { ".sigev_signo", ARG_INT, AT(8, 4) },
        { ".sigev_notify", ARG_INT, AT(12, 4) }),
    .selector = 2,
    .variants = (const SyscallVariant[]) { { 4, &type_sigevent_thread }, { 0, NULL } },
};

const SyscallType type_sigevent_whole = {
    "sigevent", SIZE_sigevent, .is_whole = true,
    .fields = FIELDS(
        { ".sigev_value", ARG_LONG, AT(0, 8) },
        { ".sigev_signo", ARG_INT, AT(8, 4) },
        { ".sigev_notify", ARG_INT, AT(12, 4) }),
};

// pselect6 and io_pgetevents pass the mask and its size behind one pointer.
const SyscallType type_sigset_arg = {
    "sigset_argpack", 16, .is_whole = true,
    .fields = FIELDS(
        { "->ss", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1), .null_ok = true },
        { "->ss_len", ARG_SIZE, AT(8, 8) }),
};

// waitid fills six members and leaves the rest of the siginfo alone.
const SyscallType type_wait_info = {
    "siginfo", SIZE_siginfo, .is_whole = true,
    .fields = FIELDS(
        { ".si_signo", ARG_INT, AT(0, 4) },
        { ".si_errno", ARG_INT, AT(4, 4) },
        { ".si_code", ARG_INT, AT(8, 4) },
        { ".si_pid", ARG_INT, AT(16, 4) },
        { ".si_uid", ARG_INT, AT(20, 4) },
        { ".si_status", ARG_INT, AT(24, 4) }),
};

// ---- Files -----------------------------------------------------------------

// The kernel passes over an entry whose descriptor is negative.
const SyscallType type_pollfd = {
    "pollfd", SIZE_pollfd,
    .fields = FIELDS(
        { ".fd", ARG_FD, AT(0, 4), .dir = DIR_IN },
        { ".events", ARG_INT, AT(4, 2), .dir = DIR_IN, .when = WHEN_BELOW(0, 0x80000000u) },
        { ".revents", ARG_INT, AT(6, 2), .dir = DIR_OUT }),
};

// To epoll_ctl. Packed on x86-64, 12 bytes; the last 8 are a cookie that nobody looks at.
const SyscallType type_epoll_event = {
    "epoll_event", SIZE_epoll_event,
    .fields = FIELDS(
        { "", ARG_FLAGS, AT(0, 4) }),
};

const SyscallType type_iovec_in = {
    "iovec", SIZE_iovec, .is_whole = true,
    .fields = FIELDS(
        { "", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1) },
        { ".iov_len", ARG_SIZE, AT(8, 8) }),
};

const SyscallType type_iovec_out = {
    "iovec", SIZE_iovec, .is_whole = true,
    .fields = FIELDS(
        { "", ARG_OUT, AT(0, 8), .len = LEN_OF_ARG(1), .wrote = LEN_SPREAD },
        { ".iov_len", ARG_SIZE, AT(8, 8) }),
};

const SyscallType type_flock = {
    "flock", SIZE_flock,
    .fields = FIELDS(
        { "->l_type", ARG_INT, AT(0, 2) },
        { "->l_whence", ARG_INT, AT(2, 2) },
        { "->l_start", ARG_LONG, AT(8, 8) },
        { "->l_len", ARG_LONG, AT(16, 8) }),
};

const SyscallType type_flock_get = {
    "flock", SIZE_flock,
    .fields = FIELDS(
        { "->l_type", ARG_INT, AT(0, 2) },
        { "->l_whence", ARG_INT, AT(2, 2) },
        { "->l_start", ARG_LONG, AT(8, 8) },
        { "->l_len", ARG_LONG, AT(16, 8) },
        { "->l_pid", ARG_INT, AT(24, 4), .dir = DIR_OUT }),
};

const SyscallType type_file_handle = {
    "file_handle", 8, .is_single = true, .is_whole = true,
    .fields = FIELDS(
        { ".handle_bytes", ARG_INT, AT(0, 4), .dir = DIR_INOUT },
        { ".handle_type", ARG_INT, AT(4, 4), .dir = DIR_OUT },
        { ".f_handle", ARG_INT, AT(8, FIELD_REST), .dir = DIR_OUT, .on = ON_SUCCESS }),
};

// Structs that grow: the kernel reads what it does not know, to see that it is 0.
const SyscallType type_open_how = {
    "open_how", SIZE_open_how, .is_single = true,
    .fields = FIELDS(
        { "->flags", ARG_LONG, AT(0, 8) },
        { "->mode", ARG_LONG, AT(8, 8) },
        { "->resolve", ARG_LONG, AT(16, 8) },
        { "", ARG_LONG, AT(24, FIELD_REST) }),
};

const SyscallType type_mnt_id_req = {
    "mnt_id_req", SIZE_mnt_id_req, .is_single = true,
    .fields = FIELDS(
        { "->size", ARG_INT, AT(0, 4) },
        { "->mnt_ns_fd", ARG_INT, AT(4, 4) },
        { "->mnt_id", ARG_LONG, AT(8, 8) },
        { "->param", ARG_LONG, AT(16, 8) },
        { "->mnt_ns_id", ARG_LONG, AT(24, 8) },
        { "", ARG_LONG, AT(32, FIELD_REST) }),
};

const SyscallType type_xattr_args_set = {
    "xattr_args", 16, .is_single = true,
    .fields = FIELDS(
        { "->value", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1), .null_ok = true },
        { "->size", ARG_INT, AT(8, 4) },
        { "->flags", ARG_FLAGS, AT(12, 4) },
        { "", ARG_LONG, AT(16, FIELD_REST) }),
};

const SyscallType type_xattr_args_get = {
    "xattr_args", 16, .is_single = true,
    .fields = FIELDS(
        { "->value", ARG_OUT, AT(0, 8), .len = LEN_OF_ARG(1), .wrote = LEN_SPREAD,
          .null_ok = true },
        { "->size", ARG_INT, AT(8, 4) },
        { "->flags", ARG_FLAGS, AT(12, 4) },
        { "", ARG_LONG, AT(16, FIELD_REST) }),
};

const SyscallType type_fiemap = {
    "fiemap", SIZE_fiemap, .is_single = true,
    .fields = FIELDS(
        { "->fm_start", ARG_LONG, AT(0, 8), .dir = DIR_IN },
        { "->fm_length", ARG_LONG, AT(8, 8), .dir = DIR_IN },
        { "->fm_flags", ARG_FLAGS, AT(16, 4), .dir = DIR_INOUT },
        { "->fm_mapped_extents", ARG_INT, AT(20, 4), .dir = DIR_OUT },
        { "->fm_extent_count", ARG_INT, AT(24, 4), .dir = DIR_IN },
        { "->fm_extents", ARG_LONG, AT(32, FIELD_REST), .dir = DIR_OUT }),
};

// ---- Asynchronous input and output -----------------------------------------

static const SyscallType type_iocb_read = {
    "iocb", SIZE_iocb,
    .fields = FIELDS(
        { "->aio_buf", ARG_OUT, AT(24, 8), .len = LEN_OF_ARG(1), .wrote = LEN_SPREAD },
        { "->aio_nbytes", ARG_SIZE, AT(32, 8) }),
};

static const SyscallType type_iocb_write = {
    "iocb", SIZE_iocb,
    .fields = FIELDS(
        { "->aio_buf", ARG_IN, AT(24, 8), .len = LEN_OF_ARG(1) },
        { "->aio_nbytes", ARG_SIZE, AT(32, 8) }),
};

static const SyscallType type_iocb_readv = {
    "iocb", SIZE_iocb,
    .fields = FIELDS(
        { "->aio_buf", ARG_IN, AT(24, 8), .len = LEN_OF_VECTOR(1, SIZE_iovec),
          .index = INDEX_NUMBER, .type = &type_iovec_out },
        { "->aio_nbytes", ARG_SIZE, AT(32, 8) }),
};

static const SyscallType type_iocb_writev = {
    "iocb", SIZE_iocb,
    .fields = FIELDS(
        { "->aio_buf", ARG_IN, AT(24, 8), .len = LEN_OF_VECTOR(1, SIZE_iovec),
          .index = INDEX_NUMBER, .type = &type_iovec_in },
        { "->aio_nbytes", ARG_SIZE, AT(32, 8) }),
};

const SyscallType type_iocb = {
    "iocb", SIZE_iocb, .is_whole = true,
    .fields = FIELDS(
        { "->aio_lio_opcode", ARG_INT, AT(16, 2) },
        { "->aio_data", ARG_LONG, AT(0, 8) },
        { "->aio_rw_flags", ARG_FLAGS, AT(12, 4) },
        { "->aio_reqprio", ARG_INT, AT(18, 2) },
        { "->aio_fildes", ARG_FD, AT(20, 4) },
        { "->aio_offset", ARG_LONG, AT(40, 8) },
        { "->aio_flags", ARG_FLAGS, AT(56, 4) }),
    .selector = 0,
    .variants = (const SyscallVariant[]) {
        { 0, &type_iocb_read }, { 1, &type_iocb_write },
        { 7, &type_iocb_readv }, { 8, &type_iocb_writev }, { 0, NULL } },
};

// Nothing has been read when io_submit returns: `on` keeps outputs for the event.
const SyscallType type_iocb_ptr = {
    "iocb pointer", 8, .is_whole = true,
    .fields = FIELDS(
        { "", ARG_IN, AT(0, 8), .len = LEN_CONST(SIZE_iocb), .on = ON_NEVER,
          .type = &type_iocb }),
};

const SyscallType type_io_event = {
    "io_event", SIZE_io_event, .is_whole = true, .has_budget = true, .budget = 2,
    .fields = FIELDS(
        { ".data", ARG_LONG, AT(0, 8) },
        { ".obj", ARG_IN, AT(8, 8), .len = LEN_CONST(SIZE_iocb), .type = &type_iocb },
        { ".res", ARG_LONG, AT(16, 8) },
        { ".res2", ARG_LONG, AT(24, 8) }),
};

// All of it is written back; only these are looked at.
const SyscallType type_io_uring_params = {
    "io_uring_params", SIZE_io_uring_params, .is_whole = true,
    .fields = FIELDS(
        { "->flags", ARG_FLAGS, AT(8, 4), .dir = DIR_IN },
        { "->cq_entries", ARG_INT, AT(4, 4), .dir = DIR_IN, .when = WHEN_ANY(0, 1 << 3) },
        { "->sq_thread_cpu", ARG_INT, AT(12, 4), .dir = DIR_IN, .when = WHEN_ANY(0, 1 << 2) },
        { "->sq_thread_idle", ARG_INT, AT(16, 4), .dir = DIR_IN, .when = WHEN_ANY(0, 1 << 1) },
        { "->wq_fd", ARG_FD, AT(24, 4), .dir = DIR_IN, .when = WHEN_ANY(0, 1 << 5) },
        { "->resv", ARG_LONG, AT(28, 12), .dir = DIR_IN },
        { "", ARG_LONG, AT(0, SIZE_io_uring_params), .dir = DIR_OUT }),
};

const SyscallType type_io_uring_enter_arg = {
    "io_uring_getevents_arg", 24,
    .fields = FIELDS(
        { "->sigmask", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1), .null_ok = true },
        { "->sigmask_sz", ARG_INT, AT(8, 4) },
        { "->min_wait_usec", ARG_INT, AT(12, 4) },
        { "->ts", ARG_IN, AT(16, 8), .len = LEN_CONST(SIZE_timespec), .null_ok = true }),
};

// Registered buffers may be read or written by any later request.
const SyscallType type_io_uring_buffers = {
    "iovec", SIZE_iovec, .is_whole = true,
    .fields = FIELDS(
        { "", ARG_OUT, AT(0, 8), .len = LEN_OF_ARG(1), .on = ON_NEVER, .null_ok = true },
        { ".iov_len", ARG_SIZE, AT(8, 8) }),
};

const SyscallType type_io_uring_files_update = {
    "io_uring_files_update", SIZE_io_uring_rsrc_update,
    .fields = FIELDS(
        { "->offset", ARG_INT, AT(0, 4) },
        { "->resv", ARG_INT, AT(4, 4) },
        { "->fds", ARG_PTR, AT(8, 8) }),
};

// ---- Sockets ---------------------------------------------------------------

const SyscallType type_addrlen_in = {
    "socklen_t", 4,
    .fields = FIELDS({ "_in", ARG_INT, AT(0, 4) }),
};

static const SyscallType type_sockaddr_un = {
    "sockaddr_un", SIZE_sockaddr_un,
    .fields = FIELDS({ ".sun_path", ARG_TEXT, AT(2, FIELD_REST) }),
};

static const SyscallType type_sockaddr_in = {
    "sockaddr_in", SIZE_sockaddr_in, // sin_zero is ignored
    .fields = FIELDS(
        { ".sin_port", ARG_INT, AT(2, 2) },
        { ".sin_addr", ARG_INT, AT(4, 4) }),
};

static const SyscallType type_sockaddr_in6 = {
    "sockaddr_in6", SIZE_sockaddr_in6,
    .fields = FIELDS(
        { ".sin6_port", ARG_INT, AT(2, 2) },
        { ".sin6_flowinfo", ARG_INT, AT(4, 4) },
        { ".sin6_addr", ARG_LONG, AT(8, 16) },
        { ".sin6_scope_id", ARG_INT, AT(24, 4) }),
};

static const SyscallType type_sockaddr_nl = {
    "sockaddr_nl", SIZE_sockaddr_nl, // nl_pad is ignored
    .fields = FIELDS(
        { ".nl_pid", ARG_INT, AT(4, 4) },
        { ".nl_groups", ARG_INT, AT(8, 4) }),
};

static const SyscallType type_sockaddr_vm = {
    "sockaddr_vm", 16,
    .fields = FIELDS(
        { ".svm_port", ARG_INT, AT(4, 4) },
        { ".svm_cid", ARG_INT, AT(8, 4) },
        { ".svm_flags", ARG_INT, AT(12, 1) }),
};

static const SyscallType type_sockaddr_unspec = {
    "sockaddr", 2, // dissolves an association: only the family is read
    .fields = FIELDS({ ".sa_family", ARG_INT, AT(0, 2) }),
};

static const SyscallType type_sockaddr_other = {
    "sockaddr", 2,
    .fields = FIELDS({ ".sa_data", ARG_INT, AT(2, FIELD_REST) }),
};

static const SyscallVariant sockaddr_variants[] = {
    { 0, &type_sockaddr_unspec }, { 1, &type_sockaddr_un }, { 2, &type_sockaddr_in },
    { 10, &type_sockaddr_in6 }, { 16, &type_sockaddr_nl }, { 40, &type_sockaddr_vm },
    { VARIANT_OTHER, &type_sockaddr_other }, { 0, NULL },
};

const SyscallType type_sockaddr = {
    "sockaddr", 2, .is_single = true,
    .fields = FIELDS({ ".sa_family", ARG_INT, AT(0, 2) }),
    .selector = 0,
    .variants = sockaddr_variants,
};

// msg_name is spoken of as a whole.
static const SyscallType type_sockaddr_whole = {
    "sockaddr", 2, .is_single = true, .is_whole = true,
    .fields = FIELDS({ ".sa_family", ARG_INT, AT(0, 2) }),
    .selector = 0,
    .variants = sockaddr_variants,
};

const SyscallType type_msghdr_send = {
    "msghdr", SIZE_msghdr, .is_whole = true,
    .fields = FIELDS(
        { ".msg_name", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1), .null_ok = true,
          .type = &type_sockaddr_whole },
        { ".msg_namelen", ARG_INT, AT(8, 4) },
        { ".msg_iov", ARG_IN, AT(16, 8), .len = LEN_OF_WIDE_VECTOR(3, SIZE_iovec),
          .null_ok = true, .index = INDEX_NUMBER, .type = &type_iovec_in },
        { ".msg_iovlen", ARG_SIZE, AT(24, 8) },
        { ".msg_control", ARG_CMSG, AT(32, 8), .len = LEN_OF_ARG(5), .null_ok = true },
        { ".msg_controllen", ARG_SIZE, AT(40, 8) }), // msg_flags is ignored
};

// msg_namelen, msg_controllen and msg_flags are results; the two lengths are also
// what the buffers were given as.
const SyscallType type_msghdr_receive = {
    "msghdr", SIZE_msghdr, .is_whole = true,
    .fields = FIELDS(
        { ".msg_name", ARG_OUT, AT(0, 8), .dir = DIR_IN, .len = LEN_KEPT(1),
          .wrote = LEN_OF_ARG(1), .null_ok = true },
        { ".msg_namelen", ARG_INT, AT(8, 4), .dir = DIR_INOUT },
        { ".msg_iov", ARG_IN, AT(16, 8), .dir = DIR_IN,
          .len = LEN_OF_WIDE_VECTOR(3, SIZE_iovec), .null_ok = true, .index = INDEX_NUMBER,
          .type = &type_iovec_out },
        { ".msg_iovlen", ARG_SIZE, AT(24, 8), .dir = DIR_IN },
        { ".msg_control", ARG_OUT, AT(32, 8), .dir = DIR_IN, .len = LEN_KEPT(5),
          .wrote = LEN_OF_ARG(5), .null_ok = true },
        { ".msg_controllen", ARG_SIZE, AT(40, 8), .dir = DIR_INOUT },
        { ".msg_flags", ARG_FLAGS, AT(48, 4), .dir = DIR_OUT }),
};

const SyscallType type_mmsghdr_send = {
    "mmsghdr", SIZE_mmsghdr,
    .fields = FIELDS(
        { ".msg_hdr", ARG_STRUCT, AT(0, SIZE_msghdr), .dir = DIR_IN, .type = &type_msghdr_send },
        { ".msg_len", ARG_INT, AT(56, 4), .dir = DIR_OUT }),
};

const SyscallType type_mmsghdr_receive = {
    "mmsghdr", SIZE_mmsghdr, .has_budget = true, .budget = 1,
    .fields = FIELDS(
        { ".msg_hdr", ARG_STRUCT, AT(0, SIZE_msghdr), .dir = DIR_INOUT,
          .type = &type_msghdr_receive },
        { ".msg_len", ARG_INT, AT(56, 4), .dir = DIR_OUT }),
};

const SyscallType type_sock_fprog = {
    "sock_fprog", SIZE_sock_fprog,
    .fields = FIELDS(
        { ".len", ARG_INT, AT(0, 2) },
        { ".filter", ARG_IN, AT(8, 8), .len = LEN_OF_ARG_TIMES(0, 8) }),
};

const SyscallType type_ifconf = {
    "ifconf", SIZE_ifconf, .is_whole = true,
    .fields = FIELDS(
        { ".ifc_len", ARG_INT, AT(0, 4), .dir = DIR_INOUT },
        { ".ifc_buf", ARG_OUT, AT(8, 8), .dir = DIR_IN, .len = LEN_KEPT(0),
          .wrote = LEN_OF_ARG(0), .null_ok = true }),
};

const SyscallType type_ifreq_get = {
    "ifreq", SIZE_ifreq, .is_whole = true,
    .fields = FIELDS(
        { ".ifr_name", ARG_TEXT, AT(0, 16), .dir = DIR_IN },
        { "", ARG_LONG, AT(0, SIZE_ifreq), .dir = DIR_OUT }),
};

// By index to name.
const SyscallType type_ifreq_name = {
    "ifreq", SIZE_ifreq, .is_whole = true,
    .fields = FIELDS(
        { ".ifr_ifindex", ARG_INT, AT(16, 4), .dir = DIR_IN },
        { "", ARG_LONG, AT(0, SIZE_ifreq), .dir = DIR_OUT }),
};

// What lies behind ifr_data depends on the ethtool command; the command is checked.
const SyscallType type_ethtool = {
    "ifreq", SIZE_ifreq,
    .fields = FIELDS(
        { ",ir->ifr_data", ARG_IN, AT(16, 8), .len = LEN_CONST(4) },
        { ",ir->ifr_name", ARG_TEXT, AT(0, 16) }),
};

// ---- Message queues, keys, devices, the rest -------------------------------

const SyscallType type_msgbuf = {
    "msgbuf", 8, .is_single = true,
    .fields = FIELDS(
        { "->mtype", ARG_LONG, AT(0, 8) },
        { "->mtext", ARG_INT, AT(8, FIELD_REST) }),
};

const SyscallType type_mq_attr_open = {
    "mq_attr", SIZE_mq_attr,
    .fields = FIELDS(
        { "->mq_maxmsg", ARG_LONG, AT(8, 8) },
        { "->mq_msgsize", ARG_LONG, AT(16, 8) }),
};

const SyscallType type_mq_attr_flags = {
    "mq_attr", SIZE_mq_attr,
    .fields = FIELDS({ "->mq_flags", ARG_LONG, AT(0, 8) }),
};

const SyscallType type_kexec_segment = {
    "kexec_segment", SIZE_kexec_segment,
    .fields = FIELDS(
        { "->buf", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1), .null_ok = true },
        { "->bufsz", ARG_SIZE, AT(8, 8) },
        { "->mem", ARG_PTR, AT(16, 8) },
        { "->memsz", ARG_SIZE, AT(24, 8) }),
};

// The kernel reads the pointer members only when the flag asks for them; a caller
// has to initialise them all the same, as it checks several combinations.
const SyscallType type_clone_args = {
    "clone_args", SIZE_clone_args, .is_single = true,
    .fields = FIELDS(
        { "->flags", ARG_LONG, AT(0, 8) },
        { "->pidfd", ARG_OUT, AT(8, 8), .len = LEN_CONST(4), .when = WHEN_ANY(0, 0x1000) },
        { "->child_tid", ARG_OUT, AT(16, 8), .len = LEN_CONST(4),
          .when = WHEN_ANY(0, BITS_CLONE_CHILD_TID) },
        { "->parent_tid", ARG_OUT, AT(24, 8), .len = LEN_CONST(4),
          .when = WHEN_ANY(0, 0x00100000) },
        { "->exit_signal", ARG_LONG, AT(32, 8) },
        { "->stack", ARG_PTR, AT(40, 8) },
        { "->stack_size", ARG_SIZE, AT(48, 8) },
        { "->tls", ARG_PTR, AT(56, 8), .when = WHEN_ANY(0, BITS_CLONE_SETTLS) },
        { "->set_tid", ARG_IN, AT(64, 8), .len = LEN_OF_ARG_TIMES(9, 4), .null_ok = true },
        { "->set_tid_size", ARG_SIZE, AT(72, 8) },
        { "->cgroup", ARG_LONG, AT(80, 8) },
        { "", ARG_LONG, AT(88, FIELD_REST) }),
};

const SyscallType type_futex_waitv = {
    "futex_waitv", SIZE_futex_waitv,
    .fields = FIELDS(
        { ".val", ARG_LONG, AT(0, 8) },
        { ".uaddr", ARG_IN, AT(8, 8), .len = LEN_CONST(4), .null_ok = true },
        { ".flags", ARG_FLAGS, AT(16, 4) },
        { ".__reserved", ARG_INT, AT(20, 4) }),
};

const SyscallType type_regset_get = {
    "iovec", SIZE_iovec,
    .fields = FIELDS(
        { " iovec->iov_base", ARG_OUT, AT(0, 8), .dir = DIR_IN, .len = LEN_KEPT(1),
          .wrote = LEN_OF_ARG(1) },
        { " iovec->iov_len", ARG_SIZE, AT(8, 8), .dir = DIR_INOUT }),
};

const SyscallType type_regset_set = {
    "iovec", SIZE_iovec,
    .fields = FIELDS(
        { " iovec->iov_base", ARG_IN, AT(0, 8), .len = LEN_OF_ARG(1) },
        { " iovec->iov_len", ARG_SIZE, AT(8, 8) }),
};

const SyscallType type_keyctl_kdf = {
    "keyctl_kdf_params", SIZE_keyctl_kdf_params,
    .fields = FIELDS(
        { "->hashname", ARG_STR, AT(0, 8), .null_ok = true },
        { "->otherinfo", ARG_IN, AT(8, 8), .len = LEN_OF_ARG(2), .null_ok = true },
        { "->otherinfolen", ARG_INT, AT(16, 4) }),
};

static const SyscallType type_sg_to_device = {
    "sg_io_hdr", SIZE_sg_io_hdr,
    .fields = FIELDS(
        { "->dxferp", ARG_IN, AT(24, 8), .dir = DIR_IN, .len = LEN_OF_ARG(1), .null_ok = true },
        { "->dxfer_len", ARG_INT, AT(12, 4), .dir = DIR_IN }),
};

static const SyscallType type_sg_from_device = {
    "sg_io_hdr", SIZE_sg_io_hdr,
    .fields = FIELDS(
        { "->dxferp", ARG_OUT, AT(24, 8), .dir = DIR_IN, .len = LEN_OF_ARG(1), .null_ok = true },
        { "->dxfer_len", ARG_INT, AT(12, 4), .dir = DIR_IN }),
};

const SyscallType type_sg_io = {
    "sg_io_hdr", SIZE_sg_io_hdr, .is_whole = true,
    .fields = FIELDS(
        { "->dxfer_direction", ARG_INT, AT(4, 4), .dir = DIR_IN },
        { "->interface_id", ARG_INT, AT(0, 4), .dir = DIR_IN },
        { "->cmd_len", ARG_INT, AT(8, 1), .dir = DIR_IN },
        { "->mx_sb_len", ARG_INT, AT(9, 1), .dir = DIR_IN },
        { "->iovec_count", ARG_INT, AT(10, 2), .dir = DIR_IN },
        { "->cmdp", ARG_IN, AT(32, 8), .dir = DIR_IN, .len = LEN_OF_ARG(2) },
        { "->sbp", ARG_OUT, AT(40, 8), .dir = DIR_IN, .len = LEN_OF_ARG(3), .null_ok = true },
        { "->timeout", ARG_INT, AT(48, 4), .dir = DIR_IN },
        { "->flags", ARG_FLAGS, AT(52, 4), .dir = DIR_IN },
        { "", ARG_LONG, AT(0, SIZE_sg_io_hdr), .dir = DIR_OUT }),
    .selector = 0,
    .variants = (const SyscallVariant[]) {
        { (u32)-2, &type_sg_to_device }, { (u32)-3, &type_sg_from_device }, { 0, NULL } },
};
