// SPDX-License-Identifier: MIT
//
// Calls of the client's that sleep, across interruptions that it must not notice: the
// monitor's kick (wire/wire.h), and the same signal if it is sent while the client blocks it.
//
// Where kicks are possible their signal stays open on the host, asleep or not, and has no
// SA_RESTART there. So the kernel ends every sleep with EINTR, and here is decided what the client
// sees: nothing, and the call goes on with the time that is left; or, if a signal of its own came
// too, what the kernel would have made of that one.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal_internal.h"
#include "engine/syscall/syscall.h"

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

const SignalKicks *signal_kicks;

typedef enum SleepForm { SAME, MS, SPEC, FUTEX, SLEEPS, SOCKET_IN, SOCKET_OUT } SleepForm;
enum { NEVER_RESTARTS = 1, TRANSFERS = 2, WAITS_FOR_ALL = 4, SUBMITS = 8 };

typedef struct SleepRow {
    u8 argument, form, flags;
} SleepRow;

static const SleepRow rows[NR_LIMIT] = {
#define SLEEP(name, argument, form, flags) [NR_##name] = {argument, form, flags},
#include "engine/signal/sleep.def"
};

static const SleepRow *row_of(u64 nr)
{
    return &rows[nr < NR_LIMIT ? nr : 0];
}

// A sleep until a point in time has nothing left over.
static bool is_for_a_time(u64 nr, const u64 args[6])
{
    return nr == NR_nanosleep || (nr == NR_clock_nanosleep && !(args[1] & TIMER_ABSTIME));
}

void sleep_begin(Sleep *sleep, u64 nr, const u64 args[6])
{
    sleep->nr = nr;
    sleep->original = args;
    for (unsigned i = 0; i < 6; i++)
        sleep->args[i] = args[i];
    sleep->done = 0;
    sleep->begun = sleep->tells_left = false;
    if (!signal_kicks)
        return;
    sleep->started = wire_stamp();
    sleep->tells_left = is_for_a_time(nr, args);
    if (sleep->tells_left)
        sleep->args[row_of(nr)->argument + 1] = (u64)&sleep->left;
}

// ------------------------------------------------------------------- what is left

static struct timespec take_off(u64 total_ns, u64 ns)
{
    u64 left = total_ns > ns ? total_ns - ns : 0;

    return (struct timespec){(i64)(left / NS_PER_S), (i64)(left % NS_PER_S)};
}

// What the kernel would refuse is left for it to refuse.
static bool read_spec(GuestAddr address, u64 *ret_ns)
{
    struct timespec spec;

    if (!address || !guest_read(address, &spec, sizeof(spec)) || spec.tv_sec < 0 ||
        spec.tv_nsec < 0 || spec.tv_nsec >= (i64)NS_PER_S)
        return false;
    *ret_ns = (u64)spec.tv_sec > UINT64_MAX / NS_PER_S - 1
                  ? UINT64_MAX
                  : (u64)spec.tv_sec * NS_PER_S + (u64)spec.tv_nsec;
    return true;
}

static void shorten_ms(Sleep *sleep, unsigned argument)
{
    i32 ms = (i32)sleep->original[argument];
    u64 elapsed = signal_kicks->elapsed_ns(sleep->started);

    if (ms <= 0)
        return;
    u64 total = (u64)ms * NS_PER_MS;
    u64 left = total > elapsed ? total - elapsed : 0;
    sleep->args[argument] = (left + NS_PER_MS - 1) / NS_PER_MS;
}

static void shorten_spec(Sleep *sleep, unsigned argument)
{
    u64 total;

    if (!read_spec(sleep->original[argument], &total))
        return;
    sleep->left = take_off(total, signal_kicks->elapsed_ns(sleep->started));
    sleep->args[argument] = (u64)&sleep->left;
}

// The socket's own timeout, which would begin anew.
static u64 socket_timeout_ns(const Sleep *sleep, bool sends)
{
    struct timeval value = {0, 0};
    socklen_t size = sizeof(value);
    i64 r = raw_syscall6(SYS_getsockopt, sleep->args[0], SOL_SOCKET,
                         sends ? SO_SNDTIMEO : SO_RCVTIMEO, (u64)&value, (u64)&size, 0);

    return r == 0 ? (u64)value.tv_sec * NS_PER_S + (u64)value.tv_usec * 1000 : 0;
}

// Waits for the socket for as long as the call would still have. False: in vain, *result
// says so; or another interruption has come.
static bool await_socket(Sleep *sleep, bool sends, i64 *result)
{
    u64 total = socket_timeout_ns(sleep, sends);
    struct pollfd fd = {(i32)sleep->args[0], sends ? POLLOUT : POLLIN, 0};

    if (total == 0)
        return true;
    struct timespec left = take_off(total, signal_kicks->elapsed_ns(sleep->started));
    i64 r = gateway_syscall(SYS_ppoll, (u64)&fd, 1, (u64)&left, 0, 0, 0);
    if (r > 0)
        return true;
    *result = r != 0 ? -EINTR : sleep->nr == NR_connect ? -EINPROGRESS : -EAGAIN;
    return false;
}

static void shorten(Sleep *sleep)
{
    const SleepRow *row = row_of(sleep->nr);

    switch ((SleepForm)row->form) {
    case SAME:
    case SOCKET_IN:
    case SOCKET_OUT: break;
    case MS: shorten_ms(sleep, row->argument); break;
    case SPEC: shorten_spec(sleep, row->argument); break;
    case FUTEX:
        if ((sleep->args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
            shorten_spec(sleep, row->argument);
        break;
    case SLEEPS:
        if (sleep->tells_left)
            sleep->args[row->argument] = (u64)&sleep->left; // and again what is left of that
        break;
    }
}

// ------------------------------------------------------------------- what was done

static bool transfers(const Sleep *sleep)
{
    u8 flags = row_of(sleep->nr)->flags;

    return (flags & TRANSFERS) || ((flags & WAITS_FOR_ALL) && (sleep->args[3] & MSG_WAITALL));
}

// True when an interruption may have cut the call short, and the rest is to be done.
static bool has_a_rest(Sleep *sleep, i64 result)
{
    if (result <= 0)
        return false;
    if (row_of(sleep->nr)->flags & SUBMITS) {
        if (sleep->args[1] == 0)
            return false;
        sleep->args[1] = 0;
        sleep->done = result;
        return true;
    }
    if (!transfers(sleep) || (u64)result >= sleep->args[2])
        return false;
    sleep->args[1] += (u64)result;
    sleep->args[2] -= (u64)result;
    sleep->done += result;
    return true;
}

// ------------------------------------------------------------------- going on

// What a signal of the client's own makes of a call that it has interrupted.
static i64 interrupted(const ThreadCtx *ctx, const Sleep *sleep)
{
    const SleepRow *row = row_of(sleep->nr);
    u64 deferred = deferred_set(ctx) &
                   ~(ctx->signal.wait_mask_armed ? ctx->signal.wait_mask : ctx->signal.client_mask);
    int sig = ctx->gateway.pending_signal ? ctx->signal.pending.info.si_signo
              : deferred                    ? __builtin_ctzll(deferred) + 1
                                            : WIRE_KICK_SIGNAL;
    const KernelAction *action = &ctx->signal.actions->action[sig];
    bool has_timeout = row->form == FUTEX                             ? sleep->original[3] != 0
                       : row->form == SOCKET_IN || row->form == SOCKET_OUT
                           ? socket_timeout_ns(sleep, row->form == SOCKET_OUT) != 0
                           : false;

    if ((row->flags & NEVER_RESTARTS) || has_timeout)
        return -EINTR;
    return !action_is_handler(action) || (action->flags & SA_RESTART) ? GATEWAY_RESTART : -EINTR;
}

static void answer_kick(ThreadCtx *ctx, const Sleep *sleep)
{
    ctx->relay.kicked = 0;
    ctx->gateway.stop_request = 0;
    ctx->relay.sleeps_in = (u32)sleep->nr + 1;
    signal_kicks->answer(ctx);
    ctx->relay.sleeps_in = 0;
}

bool sleep_goes_on(ThreadCtx *ctx, Sleep *sleep, i64 *result)
{
    const SleepRow *row = row_of(sleep->nr);

    for (;;) {
        bool cut = *result == -EINTR || (*result == GATEWAY_RESTART && sleep->begun);
        if (!ctx->relay.kicked || (!cut && !has_a_rest(sleep, *result)))
            return false;
        if (ctx->signal.must_place)
            deferred_place(ctx);
        if (signal_is_deliverable(ctx))
            return false;
        answer_kick(ctx, sleep);
        sleep->begun = true;
        shorten(sleep);
        bool is_socket = row->form == SOCKET_IN || row->form == SOCKET_OUT;
        if (!is_socket || await_socket(sleep, row->form == SOCKET_OUT, result))
            return true;
    }
}

i64 sleep_end(ThreadCtx *ctx, Sleep *sleep, i64 result)
{
    const SleepRow *row = row_of(sleep->nr);
    bool same_kind =
        ctx->gateway.pending_signal && ctx->signal.pending.info.si_signo == WIRE_KICK_SIGNAL;

    if ((result == GATEWAY_RESTART && sleep->begun) ||
        (result == -EINTR && (ctx->relay.kicked || same_kind) && signal_is_deliverable(ctx)))
        result = interrupted(ctx, sleep);
    if (sleep->done)
        return sleep->done + (result > 0 ? result : 0);
    if (result == -EINTR && sleep->tells_left) {
        GuestAddr rest = sleep->original[row->argument + 1];
        if (rest && !guest_write(rest, &sleep->left, sizeof(sleep->left)))
            return -EFAULT;
    }
    return result;
}
