// SPDX-License-Identifier: MIT
//
// How filters come to a thread: seccomp(2) and prctl(2), with their place-holders in
// the kernel, and the thread's inheritance across an execve that is followed.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/own_file.h"
#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/seccomp/seccomp_internal.h"
#include "engine/thread/thread.h"

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

i64 install_in_kernel(const struct sock_filter *insns, u32 count, u32 flags, bool by_prctl)
{
    const struct sock_fprog program = { (u16)count, (struct sock_filter *)insns };

    if (by_prctl)
        return raw_syscall3(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (u64)&program);
    return raw_syscall3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, (u64)&program);
}

// ---------------------------------------------------------------- the tree

static SeccompFilter *all_filters; // thread_lock

static u64 filter_bytes(const SeccompFilter *f)
{
    return offsetof(SeccompFilter, insns) + f->count * sizeof(f->insns[0]);
}

static bool is_equal(const SeccompFilter *a, const SeccompFilter *b)
{
    return a->flags == b->flags && a->by_prctl == b->by_prctl && a->count == b->count &&
           memcmp(a->insns, b->insns, a->count * sizeof(a->insns[0])) == 0;
}

SeccompFilter *filter_make(SeccompFilter *older, const SeccompFilter *model)
{
    u64 size = filter_bytes(model);

    for (SeccompFilter *f = all_filters; f; f = f->next)
        if (f->older == older && !f->has_listener && !model->has_listener && is_equal(f, model))
            return f;
    SeccompFilter *filter = pages_map(size);
    if (!filter)
        return NULL;
    memcpy(filter, model, size);
    filter->older = older;
    filter->next = all_filters;
    all_filters = filter;
    return filter;
}

// ---------------------------------------------------------------- to all threads

typedef struct Sync {
    SeccompFilter *filter;
    u64 pid;
} Sync;

// The registry also lists processes that share this memory; they keep their own.
static void take_filter(ThreadCtx *ctx, void *data)
{
    const Sync *sync = data;

    if (raw_syscall3(SYS_tgkill, sync->pid, (u64)ctx->thread.tid, 0) == 0)
        __atomic_store_n(&ctx->seccomp.filter, sync->filter, __ATOMIC_RELEASE);
}

static void attach(ThreadCtx *ctx, SeccompFilter *filter, u32 flags)
{
    Sync sync = { filter, (u64)raw_syscall0(SYS_getpid) };

    __atomic_store_n(&ctx->seccomp.filter, filter, __ATOMIC_RELEASE);
    if (flags & SECCOMP_FILTER_FLAG_TSYNC)
        ctx_for_each(take_filter, &sync);
}

// ---------------------------------------------------------------- one installation

// What the client asks for, in engine memory: a filter that has no place yet, and
// room for its place-holder.
typedef struct Request {
    SeccompFilter *model;
    struct sock_filter *place_holder;
    u64 size; // of the mapping that holds both
} Request;

#define MODEL_BYTES (sizeof(SeccompFilter) + PROGRAM_MAX * sizeof(struct sock_filter))
#define HOLDER_MAX (PROGRAM_MAX + LISTENER_PROLOGUE_MAX)

static bool request_open(Request *ret_request)
{
    u64 size = PAGE_UP(MODEL_BYTES + HOLDER_MAX * sizeof(struct sock_filter));
    u8 *memory = pages_map(size);

    if (!memory)
        return false;
    *ret_request = (Request){ (SeccompFilter *)memory,
                              (struct sock_filter *)(memory + MODEL_BYTES), size };
    return true;
}

// False: not a program that can be run, for a reason that the kernel shall give.
static bool read_program(GuestAddr address, SeccompFilter *model)
{
    struct sock_fprog program;

    if (!guest_read(address, &program, sizeof(program)))
        return false;
    if (program.len == 0 || program.len > PROGRAM_MAX)
        return false;
    if (!guest_read((u64)program.filter, model->insns, program.len * sizeof(model->insns[0])))
        return false;
    model->count = program.len;
    return program_is_valid(model->insns, model->count);
}

static i64 install_place_holder(const Request *r)
{
    const SeccompFilter *model = r->model;
    u32 count = 1;

    r->place_holder[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (model->has_listener) {
        count = listener_program(model->insns, model->count, r->place_holder, HOLDER_MAX);
        if (count == 0 || count > PROGRAM_MAX)
            return -ENOMEM;
    }
    return install_in_kernel(r->place_holder, count, model->flags, model->by_prctl);
}

// With TSYNC, a positive result names a thread whose filters are not ours: nothing is done.
static i64 install_locked(ThreadCtx *ctx, const Request *r)
{
    u32 flags = r->model->flags;
    SeccompFilter *filter = filter_make(ctx->seccomp.filter, r->model);

    if (!filter)
        return -ENOMEM;
    i64 result = install_place_holder(r);
    bool refused = result < 0 || (result > 0 && !r->model->has_listener);
    if (!refused)
        attach(ctx, filter, flags);
    return result;
}

static bool set_filter(ThreadCtx *ctx, u32 flags, GuestAddr program, bool by_prctl, i64 *ret_result)
{
    Request r;

    if (!request_open(&r)) {
        *ret_result = -ENOMEM;
        return true;
    }
    r.model->flags = flags;
    r.model->by_prctl = by_prctl;
    r.model->has_listener = (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
    bool can_run = read_program(program, r.model);
    if (can_run) {
        lock_acquire(&thread_lock);
        *ret_result = install_locked(ctx, &r);
        lock_release(&thread_lock);
    }
    pages_unmap(r.model, r.size);
    return can_run;
}

// The kernel's mode is that of the filters (P1), or of what the process was started under.
static i64 set_strict(ThreadCtx *ctx)
{
    if (raw_syscall1(SYS_prctl, PR_GET_SECCOMP) != SECCOMP_MODE_DISABLED)
        return -EINVAL;
    ctx->seccomp.strict = 1;
    return 0;
}

bool seccomp_set_mode(ThreadCtx *ctx, u64 nr, const u64 args[6], i64 *ret_result)
{
    bool by_prctl = nr == SYS_prctl;
    u32 operation = (u32)args[0], flags = (u32)args[1];
    bool is_strict = by_prctl ? args[1] == SECCOMP_MODE_STRICT
                              : operation == SECCOMP_SET_MODE_STRICT && !flags && !args[2];
    bool is_filter = by_prctl ? args[1] == SECCOMP_MODE_FILTER
                              : operation == SECCOMP_SET_MODE_FILTER;

    if (by_prctl && operation != PR_SET_SECCOMP)
        return false;
    if (is_strict) {
        *ret_result = set_strict(ctx);
        return true;
    }
    return is_filter && set_filter(ctx, by_prctl ? 0 : flags, args[2], by_prctl, ret_result);
}

// ---------------------------------------------------------------- for good

// Flags that concern one installation only; what it was to begin with is over.
#define FLAGS_OF_MOMENT                                                                            \
    (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |                                 \
     SECCOMP_FILTER_FLAG_NEW_LISTENER | (1u << 5) /* WAIT_KILLABLE_RECV */)

// The place-holder of a filter with a listener asks it already.
static u32 without_listener(const SeccompFilter *f, struct sock_filter *dst)
{
    memcpy(dst, f->insns, f->count * sizeof(dst[0]));
    for (u32 i = 0; f->has_listener && i < f->count; i++)
        if (dst[i].code == (BPF_RET | BPF_K) &&
            (dst[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
            dst[i].k = SECCOMP_RET_ALLOW;
    return f->count;
}

static i64 install_chain(const SeccompFilter *f, struct sock_filter *room)
{
    i64 result = f->older ? install_chain(f->older, room) : 0;

    if (result < 0)
        return result;
    u32 count = without_listener(f, room);
    result = install_in_kernel(room, count, f->flags & ~(u32)FLAGS_OF_MOMENT, f->by_prctl);
    // A client that was privileged when it installed its filter, and is not any more. The
    // program shall not run without it.
    if (result == -EACCES && raw_syscall4(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0) == 0)
        result = install_in_kernel(room, count, f->flags & ~(u32)FLAGS_OF_MOMENT, f->by_prctl);
    return result;
}

i64 seccomp_install_for_exec(const ThreadCtx *ctx)
{
    struct sock_filter room[PROGRAM_MAX];

    return ctx->seccomp.filter ? install_chain(ctx->seccomp.filter, room) : 0;
}

// ---------------------------------------------------------------- across execve

// Oldest first; the pointers mean nothing to the reader.
static bool write_chain(int fd, const SeccompFilter *f)
{
    u64 size = filter_bytes(f);

    return (!f->older || write_chain(fd, f->older)) && own_file_write(fd, f, size);
}

int seccomp_across_exec(const ThreadCtx *ctx)
{
    i64 fd = raw_syscall2(SYS_memfd_create, (u64) "seccomp", 0);

    if (fd >= 0 && !write_chain((int)fd, ctx->seccomp.filter)) {
        raw_syscall1(SYS_close, (u64)fd);
        return -ENOMEM;
    }
    return (int)fd;
}

static bool read_all(int fd, void *data, u64 size)
{
    for (u64 done = 0; done < size;) {
        i64 n = raw_syscall3(SYS_read, (u64)fd, (u64)data + done, size - done);
        if (n <= 0)
            return false;
        done += (u64)n;
    }
    return true;
}

static bool adopt_one(ThreadCtx *ctx, int fd, SeccompFilter *model)
{
    if (model->count == 0 || model->count > PROGRAM_MAX)
        return false;
    if (!read_all(fd, model->insns, model->count * sizeof(model->insns[0])))
        return false;
    if (!program_is_valid(model->insns, model->count))
        return false;
    lock_acquire(&thread_lock);
    SeccompFilter *filter = filter_make(ctx->seccomp.filter, model);
    lock_release(&thread_lock);
    if (filter)
        ctx->seccomp.filter = filter;
    return filter != NULL;
}

bool seccomp_adopt(ThreadCtx *ctx, int fd)
{
    Request r;

    if (!request_open(&r))
        return false;
    raw_syscall3(SYS_lseek, (u64)fd, 0, SEEK_SET);
    bool ok = true;
    while (ok && read_all(fd, r.model, offsetof(SeccompFilter, insns)))
        ok = adopt_one(ctx, fd, r.model);
    pages_unmap(r.model, r.size);
    raw_syscall1(SYS_close, (u64)fd);
    return ok;
}
