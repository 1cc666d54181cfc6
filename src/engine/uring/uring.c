// SPDX-License-Identifier: MIT
//
// Rings: how they come and go, requests as they are submitted, completions as they are noticed.
#include <unistd.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/log/log.h"
#include "engine/uring/uring_internal.h"

typedef struct Cqe {
    u64 user_data;
    i32 result;
    u32 flags;
} Cqe;

// Requests under way. Their keys lie apart, since they are searched for each completion.
static u64 *keys;
static Pending *pendings;
static u32 pending_room, pending_high, pending_count;

static void watch(void)
{
    u32 watched = pending_count;
    for (u32 i = 0; i < uring_ring_count; i++)
        watched += uring_rings[i].is_used && uring_rings[i].p.flags & SETUP_SQPOLL;
    __atomic_store_n(&uring_is_watched, watched, __ATOMIC_RELEASE);
}

// ------------------------------------------------------------------- requests under way

static bool make_room(void)
{
    u32 room = max_u64(256, 2 * pending_room);
    u64 *more_keys = pages_map(room * sizeof(u64));
    Pending *more = pages_map(room * sizeof(Pending));
    if (!more_keys || !more)
        return false;
    for (u32 i = 0; i < pending_high; i++) {
        more_keys[i] = keys[i];
        more[i] = pendings[i];
        if (more[i].copy == pendings[i].kept)
            more[i].copy = more[i].kept;
    }
    if (keys) {
        pages_unmap(keys, pending_room * sizeof(u64));
        pages_unmap(pendings, pending_room * sizeof(Pending));
    }
    keys = more_keys;
    pendings = more;
    pending_room = room;
    return true;
}

static Pending *new_pending(u64 key)
{
    u32 i = 0;
    if (pending_count < pending_high)
        while (pendings[i].is_used)
            i++;
    else
        i = pending_high;
    if (i == pending_room && !make_room())
        return NULL;
    if (i == pending_high)
        pending_high++;
    keys[i] = key;
    pendings[i] = (Pending){.is_used = true};
    pending_count++;
    return &pendings[i];
}

static void drop_pending(Pending *p)
{
    if (p->copy && p->copy != p->kept)
        pages_unmap(p->copy, p->vector_bytes);
    p->is_used = false;
    pending_count--;
    while (pending_high && !pendings[pending_high - 1].is_used)
        pending_high--;
}

// The iovecs of the request that is being walked, as they were when it was submitted.
static __thread const Pending *walked;

static bool read_kept(GuestAddr address, void *dst, size_t len)
{
    const Pending *p = walked;
    if (p->copy && address >= p->vector && address + len <= p->vector + p->vector_bytes) {
        __builtin_memcpy(dst, p->copy + (address - p->vector), len);
        return true;
    }
    return guest_read(address, dst, len);
}

// Where the iovecs of a request are, and how many bytes of them.
static u64 vector_of(const SyscallCall *call, GuestAddr *ret_vector)
{
    enum { IOV_OFFSET = 16, IOVEC_BYTES = 16, IOVECS_MAX = 1024 };
    u64 iov[2] = {call->args[1], call->args[2]};
    if (call->nr == NR_recvmsg && !guest_read(call->args[1] + IOV_OFFSET, iov, sizeof(iov)))
        return 0;
    if (call->nr != NR_recvmsg && call->nr != NR_preadv2)
        return 0;
    *ret_vector = iov[0];
    return iov[1] <= IOVECS_MAX ? iov[1] * IOVEC_BYTES : 0;
}

static void keep_vector(Pending *p)
{
    p->vector_bytes = (u32)vector_of(&p->call, &p->vector);
    if (!p->vector_bytes)
        return;
    u8 *copy = p->vector_bytes <= sizeof(p->kept) ? p->kept : pages_map(p->vector_bytes);
    if (copy && guest_read(p->vector, copy, p->vector_bytes))
        p->copy = copy;
    else if (copy && copy != p->kept)
        pages_unmap(copy, p->vector_bytes);
}

// ---------------------------------------------------------------------------- submission

typedef struct Check {
    SyscallRangeFn fn;
    void *arg;
    bool writes;
} Check;

static void check_range(const SyscallRange *range, void *arg)
{
    Check *check = arg;
    check->writes |= range->dir == RANGE_OUT;
    check->fn(range, check->arg);
}

static void ignore_range(const SyscallRange *range, void *arg)
{
    (void)range;
    (void)arg;
}

static void add_pending(u16 ring, const Sqe *sqe, const SyscallCall *call)
{
    Pending *p = new_pending(sqe->user_data);
    if (!p)
        return;
    p->ring = ring;
    p->flags = sqe->flags;
    p->group = sqe->group;
    p->call = *call;
    p->call.read_guest = read_kept;
    if (!(sqe->flags & SQE_BUFFER_SELECT))
        keep_vector(p);
}

// U3. `is_taken`: the kernel has it already, what it has read may be anything by now.
static void submit(u16 ring, const Sqe *sqe, GuestAddr address, bool is_taken, SyscallRangeFn fn,
                   void *arg)
{
    SyscallCall call;
    Check check = {is_taken ? ignore_range : fn, arg, false};
    bool has_call = ops_call(sqe, &call);
    bool chosen = sqe->flags & SQE_BUFFER_SELECT;
    if (!is_taken)
        ops_members(sqe, address, has_call ? &call : NULL, fn, arg);
    call.read_guest = guest_read;
    if (has_call && !chosen)
        syscall_ranges(&call, SYSCALL_BEFORE, check_range, &check);
    lock_acquire(&uring_lock);
    if (sqe->opcode == OP_PROVIDE_BUFFERS)
        buffers_provide(ring, sqe);
    if (has_call && (check.writes || chosen))
        add_pending(ring, sqe, &call);
    watch();
    lock_release(&uring_lock);
}

// The next request that nobody has looked at; false: there is none.
static bool next_request(Ring *r, Sqe *ret_sqe, GuestAddr *ret_address, bool *ret_taken)
{
    u32 head, tail, index;
    if (!r->sq || !r->sqes || !guest_read(r->sq + r->p.sq.tail, &tail, sizeof(tail)) ||
        !guest_read(r->sq + r->p.sq.head, &head, sizeof(head)))
        return false;
    if (tail - r->sq_seen > r->p.sq_entries) {
        static u32 noted;
        if (!__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
            log_note("io_uring: the kernel took requests faster than they could be looked at");
        r->sq_seen = tail - r->p.sq_entries;
    }
    if (r->sq_seen == tail)
        return false;
    index = r->sq_seen & (r->p.sq_entries - 1);
    if (!(r->p.flags & SETUP_NO_SQARRAY) &&
        !guest_read(r->sq + r->p.sq.array + index * sizeof(u32), &index, sizeof(index)))
        return false;
    *ret_taken = (i32)(r->sq_seen - head) < 0;
    *ret_address = r->sqes + (u64)index * (r->p.flags & SETUP_SQE128 ? 2 : 1) * SQE_BYTES;
    r->sq_seen++;
    return guest_read(*ret_address, ret_sqe, sizeof(*ret_sqe));
}

static void submit_all(u16 ring, SyscallRangeFn fn, void *arg)
{
    Sqe sqe;
    GuestAddr address;
    bool is_taken;
    for (;;) {
        lock_acquire(&uring_lock);
        bool any = uring_rings[ring].is_used &&
                   next_request(&uring_rings[ring], &sqe, &address, &is_taken);
        lock_release(&uring_lock);
        if (!any)
            return;
        submit(ring, &sqe, address, is_taken, fn, arg);
    }
}

// --------------------------------------------------------------------------- completions

static void complete(Pending *p, const Cqe *cqe, SyscallRangeFn wrote, void *arg)
{
    p->call.result = (u64)(i64)cqe->result;
    walked = p;
    if (!(p->flags & SQE_BUFFER_SELECT))
        syscall_ranges(&p->call, SYSCALL_AFTER, wrote, arg);
    else if (cqe->flags & CQE_BUFFER && cqe->result > 0)
        buffers_written(p, (u16)(cqe->flags >> 16), (u64)cqe->result, wrote, arg);
}

// Requests with the same user_data cannot be told apart: any of them may be the one. The one that
// was submitted first is taken for it, and all count as written so far.
static void complete_all(u16 ring, const Cqe *cqe, SyscallRangeFn wrote, void *arg)
{
    Pending *first = NULL;
    for (u32 i = 0; i < pending_high; i++) {
        Pending *p = &pendings[i];
        if (keys[i] != cqe->user_data || !p->is_used || p->ring != ring)
            continue;
        first = first ? first : p;
        complete(p, cqe, wrote, arg);
    }
    if (first && !(cqe->flags & CQE_MORE))
        drop_pending(first);
}

// Results were overwritten before they were seen: all that is under way counts as written.
static void complete_lost(u16 ring, SyscallRangeFn wrote, void *arg)
{
    for (u32 i = 0; i < pending_high; i++) {
        Pending *p = &pendings[i];
        if (p->is_used && p->ring == ring)
            complete(p, &(Cqe){.result = INT32_MAX}, wrote, arg);
    }
}

// Of a request that has no completion when it succeeds nothing will be heard.
static void complete_silent(u16 ring, SyscallRangeFn wrote, void *arg)
{
    for (u32 i = 0; i < pending_high; i++) {
        Pending *p = &pendings[i];
        if (!p->is_used || p->ring != ring || !(p->flags & SQE_CQE_SKIP))
            continue;
        complete(p, &(Cqe){.result = INT32_MAX}, wrote, arg);
        drop_pending(p);
    }
}

static void settle_ring(u16 ring, SyscallRangeFn wrote, void *arg)
{
    Ring *r = &uring_rings[ring];
    u32 tail, entries = r->p.cq_entries;
    u64 step = r->p.flags & SETUP_CQE32 ? 2 * CQE_BYTES : CQE_BYTES;
    if (!r->cq || !guest_read(r->cq + r->p.cq.tail, &tail, sizeof(tail)))
        return;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); // U1
    complete_silent(ring, wrote, arg);
    if (tail - r->cq_seen > entries) {
        complete_lost(ring, wrote, arg);
        r->cq_seen = tail - entries;
    }
    for (; r->cq_seen != tail; r->cq_seen++) {
        Cqe cqe;
        GuestAddr at = r->cq + r->p.cq.cqes + (r->cq_seen & (entries - 1)) * step;
        if (!guest_read(at, &cqe, sizeof(cqe)))
            return;
        if (!(cqe.flags & CQE_NOTIF))
            complete_all(ring, &cqe, wrote, arg);
        if (r->p.flags & SETUP_CQE_MIXED && cqe.flags & CQE_32 && r->cq_seen + 1 != tail)
            r->cq_seen++; // its second half
    }
}

static void take_by_itself(u16 ring)
{
    if (uring_rings[ring].p.flags & SETUP_SQPOLL)
        submit_all(ring, ignore_range, NULL);
}

void uring_settle(SyscallRangeFn wrote, void *arg)
{
    for (u32 i = 0; i < __atomic_load_n(&uring_ring_count, __ATOMIC_ACQUIRE); i++) {
        take_by_itself((u16)i);
        lock_acquire(&uring_lock);
        if (uring_rings[i].is_used) {
            settle_ring((u16)i, wrote, arg);
            buffers_look((u16)i);
        }
        watch();
        lock_release(&uring_lock);
    }
}

// ---------------------------------------------------------------------- rings come and go

static void forget_ring(u16 ring)
{
    for (u32 i = 0; i < pending_high; i++) {
        if (pendings[i].is_used && pendings[i].ring == ring)
            drop_pending(&pendings[i]);
    }
    buffers_forget(ring);
    uring_rings[ring] = (Ring){.fd = -1};
    watch();
}

static void new_ring(i32 fd, const UringParams *p)
{
    u32 i = 0;
    while (i < RINGS_MAX && uring_rings[i].is_used)
        i++;
    if (i == RINGS_MAX) {
        log_note("io_uring: too many rings, the buffers of the others are not followed");
        return;
    }
    Ring *r = &uring_rings[i];
    *r = (Ring){.is_used = true, .fd = fd, .registered = -1, .p = *p};
    if (p->flags & SETUP_NO_MMAP) {
        r->sq = r->cq = p->cq.user_addr;
        r->sqes = p->sq.user_addr;
    }
    if (i >= uring_ring_count)
        __atomic_store_n(&uring_ring_count, i + 1, __ATOMIC_RELEASE);
    watch();
}

static Ring *ring_by_fd(i32 fd)
{
    for (u32 i = 0; i < uring_ring_count; i++) {
        if (uring_rings[i].is_used && uring_rings[i].fd == fd && fd >= 0)
            return &uring_rings[i];
    }
    return NULL;
}

static u16 number_of(const Ring *r)
{
    return (u16)(r - uring_rings);
}

static void mapped(i32 fd, u64 offset, GuestAddr address)
{
    Ring *r = ring_by_fd(fd);
    if (!r)
        return;
    if (offset == 0) {
        r->sq = address;
        if (r->p.features & FEATURE_SINGLE_MMAP)
            r->cq = address;
    } else if (offset == OFFSET_CQ_RING) {
        r->cq = address;
    } else if (offset == OFFSET_SQES) {
        r->sqes = address;
    } else if ((offset & 0xf8000000) == OFFSET_PBUF_RING) {
        buffers_mapped(number_of(r), (u16)(offset >> 16), address);
    }
}

static void unmapped(GuestAddr start, u64 size)
{
    for (u32 i = 0; i < uring_ring_count; i++) {
        const Ring *r = &uring_rings[i];
        if (r->is_used && ((r->cq && r->cq - start < size) || (r->sq && r->sq - start < size)))
            forget_ring((u16)i);
    }
}

static void closed(u32 first, u32 last)
{
    for (u32 i = 0; i < uring_ring_count; i++) {
        if (uring_rings[i].fd >= 0 && (u32)uring_rings[i].fd >= first &&
            (u32)uring_rings[i].fd <= last)
            uring_rings[i].fd = -1;
    }
}

// Descriptors of rings that a thread may name by number (struct io_uring_rsrc_update).
static void registered(GuestAddr list, u32 count)
{
    enum { REGISTERED_MAX = 16 };
    struct { u32 number, resv; u64 fd; } entry;
    for (u32 i = 0; i < count && i < REGISTERED_MAX; i++) {
        Ring *r = guest_read(list + i * sizeof(entry), &entry, sizeof(entry))
                      ? ring_by_fd((i32)entry.fd) : NULL;
        if (r) {
            r->registered = (i32)entry.number;
            r->registered_by = gettid();
        }
    }
}

// Which ring an enter is about; ~0: it cannot be said.
static u32 ring_entered(const u64 args[6])
{
    i32 fd = (i32)args[0];
    if (!(args[3] & ENTER_REGISTERED_RING)) {
        const Ring *r = ring_by_fd(fd);
        return r ? number_of(r) : ~0u;
    }
    i32 tid = gettid();
    for (u32 i = 0; i < uring_ring_count; i++) {
        const Ring *r = &uring_rings[i];
        if (r->is_used && r->registered == fd && r->registered_by == tid)
            return i;
    }
    return ~0u;
}

static void note_call(u64 nr, const u64 args[6], i64 result)
{
    UringParams p;
    Ring *r = ring_by_fd((i32)args[0]);
    switch (nr) {
    case NR_io_uring_setup:
        if (guest_read(args[1], &p, sizeof(p)))
            new_ring((i32)result, &p);
        return;
    case NR_mmap: mapped((i32)args[4], args[5], (GuestAddr)result); return;
    case NR_munmap: unmapped(args[0], args[1]); return;
    case NR_close: closed((u32)args[0], (u32)args[0]); return;
    case NR_close_range: closed((u32)args[0], (u32)args[1]); return;
    case NR_io_uring_register:
        if ((u32)args[1] == REGISTER_RING_FDS)
            registered(args[2], (u32)args[3]);
        else if (r && (u32)args[1] == REGISTER_PBUF_RING)
            buffers_register(number_of(r), args[2]);
        else if (r && (u32)args[1] == UNREGISTER_PBUF_RING)
            buffers_unregister(number_of(r), args[2]);
        return;
    }
}

// ------------------------------------------------------------------------------ the calls

void uring_before(u64 nr, const u64 args[6], SyscallRangeFn check, void *arg)
{
    if (nr != NR_io_uring_enter || !uring_ring_count)
        return;
    lock_acquire(&uring_lock);
    u32 entered = ring_entered(args);
    lock_release(&uring_lock);
    for (u32 i = 0; i < uring_ring_count; i++) {
        if (entered == ~0u || entered == i)
            submit_all((u16)i, check, arg);
    }
}

void uring_after(u64 nr, const u64 args[6], i64 result, SyscallRangeFn wrote, void *arg)
{
    bool concerns = nr == NR_io_uring_setup || nr == NR_io_uring_register || nr == NR_mmap ||
                    nr == NR_munmap || nr == NR_close || nr == NR_close_range;
    if (!uring_ring_count && nr != NR_io_uring_setup)
        return;
    if (concerns && !syscall_failed((u64)result)) {
        lock_acquire(&uring_lock);
        note_call(nr, args, result);
        lock_release(&uring_lock);
    }
    if (uring_is_watched && (nr == NR_io_uring_enter || uring_has_news()))
        uring_settle(wrote, arg);
}

void uring_fork_prepare(void)
{
    lock_acquire(&uring_lock);
}

void uring_fork_done(void)
{
    lock_release(&uring_lock);
}
