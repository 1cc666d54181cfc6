// SPDX-License-Identifier: MIT
//
// See gate.h. What waits is watched with an edge-triggered epoll: the head stays in the socket's
// buffer, where the library will read it, so a level-triggered one would report it without end.
//
// Concurrency
//   A1  `waiting` is the thread's alone.
//   A2  `admitted` and `stops` are under `lock`. A descriptor in it is a duplicate: the library
//       closes its own whenever it likes, and the number may be another file's at once.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspect/http/gate.h"

enum {
    HEAD_MS = 10 * 1000,
    QUEUE_MS = 20 * 1000,
    IDLE_MS = 15 * 1000,
    FULL_PAUSE_MS = 100, // when no descriptor is left
    EVENTS = 64,
};

typedef struct Waiting {
    int socket; // -1: this place is free
    bool is_ready;
    bool has_spoken;
    u64 number; // in order of arrival; of ready ones in order of their heads
    u64 deadline_ns;
} Waiting;

struct Admitted {
    int library_socket; // the number that the library knows; -1: this place is free
    int socket;         // ours, A2
    bool is_idle, is_ended;
    u64 number; // in order of admission
    u64 idle_since_ns;
    u64 deadline_ns; // 0: none
};

struct Gate {
    int listener, epoll, wake;
    GateAdmitFn *admit;
    void *arg;
    pthread_t thread;
    bool has_thread;
    Waiting waiting[GATE_WAITING_MAX];
    u64 numbers; // given so far
    u64 listens_again_ns; // 0: it listens
    char head[GATE_HEAD_BYTES];
    pthread_mutex_t lock;
    Admitted admitted[GATE_ADMITTED_MAX];
    bool stops;
};

// The data of epoll's events: a place in `waiting`, or one of these.
enum { EVENT_LISTENER = GATE_WAITING_MAX, EVENT_WAKE };

static u64 now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

static u64 after_ms(u32 ms)
{
    return now_ns() + ms * 1000000ull;
}

static void wake_up(const Gate *gate)
{
    u64 one = 1;
    ssize_t ignored = write(gate->wake, &one, sizeof(one)); // it is awake if this fails

    (void)ignored;
}

// ------------------------------------------------------------------------- refusing

static const char too_slow[] = "408 Request Timeout";
static const char too_long[] = "431 Request Header Fields Too Large";
static const char too_busy[] = "503 Service Unavailable";

static const char *words_of(const char *status)
{
    return status == too_slow   ? "the request did not arrive in time"
           : status == too_long ? "request line and headers have 32 KiB together"
                                : "too many connections are open: try again in a moment";
}

static const char *code_of(const char *status)
{
    return status == too_slow ? "too-slow" : status == too_long ? "too-large" : "busy";
}

// What the client has sent is read first: the kernel would answer unread bytes with a reset, which
// takes our words from the client, too.
static void refuse(Gate *gate, int socket, const char *status)
{
    char text[512], body[256];
    int size = snprintf(body, sizeof(body),
                        "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}\n", code_of(status),
                        words_of(status));
    int length = snprintf(text, sizeof(text),
                          "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                          "Connection: close\r\nRetry-After: 1\r\nX-Content-Type-Options: nosniff"
                          "\r\nCache-Control: no-store\r\n\r\n%s",
                          status, size, body);

    for (int i = 0; i < 4 && recv(socket, gate->head, sizeof(gate->head), MSG_DONTWAIT) > 0; i++)
        continue;
    send(socket, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
}

// Leaves the place free. `status` NULL: without a word.
static void drop(Gate *gate, Waiting *waiting, const char *status)
{
    if (status == too_busy || (status && (waiting->has_spoken || waiting->is_ready)))
        refuse(gate, waiting->socket, status);
    close(waiting->socket); // and out of the epoll with it
    waiting->socket = -1;
}

// -------------------------------------------------------------------------- accepting

// The oldest of those that are ready, or of those that are not.
static Waiting *oldest(Gate *gate, bool is_ready)
{
    Waiting *found = NULL;

    for (size_t i = 0; i < GATE_WAITING_MAX; i++) {
        Waiting *waiting = &gate->waiting[i];
        if (waiting->socket >= 0 && waiting->is_ready == is_ready &&
            (!found || waiting->number < found->number))
            found = waiting;
    }
    return found;
}

// Whoever is silent has to go before one who has said what he wants.
static Waiting *find_place(Gate *gate)
{
    for (size_t i = 0; i < GATE_WAITING_MAX; i++) {
        if (gate->waiting[i].socket < 0)
            return &gate->waiting[i];
    }
    Waiting *silent = oldest(gate, false);
    if (silent)
        drop(gate, silent, too_busy);
    return silent;
}

static void take_in(Gate *gate, int socket)
{
    Waiting *waiting = find_place(gate);

    if (!waiting) {
        refuse(gate, socket, too_busy);
        close(socket);
        return;
    }
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLRDHUP | EPOLLET,
        .data.u64 = (u64)(waiting - gate->waiting),
    };
    *waiting = (Waiting){.socket = socket, .number = gate->numbers++,
                         .deadline_ns = after_ms(HEAD_MS)};
    if (epoll_ctl(gate->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
        drop(gate, waiting, too_busy);
}

static void watch_listener(Gate *gate, bool listens)
{
    struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.u64 = EVENT_LISTENER};

    epoll_ctl(gate->epoll, EPOLL_CTL_MOD, gate->listener, &event);
    gate->listens_again_ns = listens ? 0 : after_ms(FULL_PAUSE_MS);
}

static void accept_all(Gate *gate)
{
    for (int i = 0; i < EVENTS; i++) {
        int socket = accept4(gate->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) {
            take_in(gate, socket);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            // The kernel would report the same connection again at once.
            Waiting *silent = oldest(gate, false);
            if (silent)
                drop(gate, silent, too_busy);
            watch_listener(gate, false);
        }
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

// ------------------------------------------------------------------------------ heads

static bool has_head(const char *text, size_t size)
{
    return memmem(text, size, "\r\n\r\n", 4) || memmem(text, size, "\n\n", 2);
}

static void look_at(Gate *gate, Waiting *waiting)
{
    ssize_t n = recv(waiting->socket, gate->head, sizeof(gate->head), MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    waiting->has_spoken |= n > 0;
    if (n <= 0) {
        drop(gate, waiting, NULL);
    } else if (has_head(gate->head, (size_t)n)) {
        epoll_ctl(gate->epoll, EPOLL_CTL_DEL, waiting->socket, NULL);
        waiting->is_ready = true;
        waiting->number = gate->numbers++;
        waiting->deadline_ns = after_ms(QUEUE_MS);
    } else if (n == sizeof(gate->head)) {
        drop(gate, waiting, too_long);
    }
}

// --------------------------------------------------------------------------- admitting

// NULL: there is none; then the connection that has been idle longest is asked to end.
static Admitted *reserve(Gate *gate, int library_socket, int socket)
{
    Admitted *idle = NULL;

    for (size_t i = 0; i < GATE_ADMITTED_MAX; i++) {
        Admitted *place = &gate->admitted[i];
        if (place->library_socket < 0) {
            *place = (Admitted){.library_socket = library_socket, .socket = socket,
                                .number = gate->numbers++, .deadline_ns = after_ms(HEAD_MS)};
            return place;
        }
        if (place->is_idle && !place->is_ended &&
            (!idle || place->idle_since_ns < idle->idle_since_ns))
            idle = place;
    }
    if (idle) {
        idle->is_ended = true;
        shutdown(idle->socket, SHUT_RDWR);
    }
    return NULL;
}

// False: there is no place now.
static bool admit(Gate *gate, Waiting *waiting)
{
    int ours = fcntl(waiting->socket, F_DUPFD_CLOEXEC, 3);

    pthread_mutex_lock(&gate->lock);
    Admitted *place = ours >= 0 ? reserve(gate, waiting->socket, ours) : NULL;
    pthread_mutex_unlock(&gate->lock);
    if (!place) {
        if (ours >= 0)
            close(ours);
        return false;
    }
    int socket = waiting->socket;
    waiting->socket = -1;
    if (!gate->admit(gate->arg, socket))
        gate_closed(gate, place);
    return true;
}

static void admit_ready(Gate *gate)
{
    Waiting *waiting;

    while ((waiting = oldest(gate, true)) && admit(gate, waiting))
        continue;
}

// --------------------------------------------------------------------------- deadlines

static u64 end_late_waiting(Gate *gate, u64 now)
{
    u64 next = UINT64_MAX;

    for (size_t i = 0; i < GATE_WAITING_MAX; i++) {
        Waiting *waiting = &gate->waiting[i];
        if (waiting->socket >= 0 && waiting->deadline_ns <= now)
            drop(gate, waiting, waiting->is_ready ? too_busy : too_slow);
        if (waiting->socket >= 0)
            next = min_u64(next, waiting->deadline_ns);
    }
    return next;
}

static u64 end_late_admitted(Gate *gate, u64 now)
{
    u64 next = UINT64_MAX;

    pthread_mutex_lock(&gate->lock);
    for (size_t i = 0; i < GATE_ADMITTED_MAX; i++) {
        Admitted *place = &gate->admitted[i];
        if (place->library_socket < 0 || place->is_ended || !place->deadline_ns)
            continue;
        if (place->deadline_ns <= now) {
            place->is_ended = true;
            shutdown(place->socket, SHUT_RDWR);
        } else {
            next = min_u64(next, place->deadline_ns);
        }
    }
    pthread_mutex_unlock(&gate->lock);
    return next;
}

// Returns how long nothing will be late, for epoll_wait().
static int end_late(Gate *gate)
{
    u64 now = now_ns();
    u64 next = min_u64(end_late_waiting(gate, now), end_late_admitted(gate, now));

    if (gate->listens_again_ns && gate->listens_again_ns <= now)
        watch_listener(gate, true);
    if (gate->listens_again_ns)
        next = min_u64(next, gate->listens_again_ns);
    return next == UINT64_MAX ? -1 : (int)min_u64((next - now) / 1000000 + 1, 60 * 1000);
}

// -------------------------------------------------------------------------- the thread

static void take_event(Gate *gate, const struct epoll_event *event)
{
    u64 count;

    if (event->data.u64 == EVENT_LISTENER) {
        accept_all(gate);
    } else if (event->data.u64 == EVENT_WAKE) {
        ssize_t ignored = read(gate->wake, &count, sizeof(count));
        (void)ignored;
    } else {
        Waiting *waiting = &gate->waiting[event->data.u64];
        if (waiting->socket >= 0 && !waiting->is_ready)
            look_at(gate, waiting);
    }
}

static bool must_stop(Gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    bool stops = gate->stops;
    pthread_mutex_unlock(&gate->lock);
    return stops;
}

static void *run(void *arg)
{
    Gate *gate = arg;
    struct epoll_event events[EVENTS];

    pthread_setname_np(pthread_self(), "gate");
    while (!must_stop(gate)) {
        admit_ready(gate);
        int count = epoll_wait(gate->epoll, events, EVENTS, end_late(gate));
        for (int i = 0; i < count; i++)
            take_event(gate, &events[i]);
    }
    for (size_t i = 0; i < GATE_WAITING_MAX; i++) {
        if (gate->waiting[i].socket >= 0)
            drop(gate, &gate->waiting[i], NULL);
    }
    return NULL;
}

static bool watch(const Gate *gate, int fd, u64 data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};

    return epoll_ctl(gate->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

Gate *gate_new(int listener, GateAdmitFn *admit_fn, void *arg)
{
    Gate *gate = calloc(1, sizeof(*gate));

    if (!gate)
        return NULL;
    gate->listener = listener;
    gate->admit = admit_fn;
    gate->arg = arg;
    for (size_t i = 0; i < GATE_WAITING_MAX; i++)
        gate->waiting[i].socket = -1;
    for (size_t i = 0; i < GATE_ADMITTED_MAX; i++)
        gate->admitted[i].library_socket = -1;
    pthread_mutex_init(&gate->lock, NULL);
    gate->epoll = epoll_create1(EPOLL_CLOEXEC);
    gate->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gate->epoll >= 0 && gate->wake >= 0 && watch(gate, listener, EVENT_LISTENER) &&
        watch(gate, gate->wake, EVENT_WAKE))
        return gate;
    gate_free(gate);
    return NULL;
}

bool gate_start(Gate *gate)
{
    gate->has_thread = pthread_create(&gate->thread, NULL, run, gate) == 0;
    return gate->has_thread;
}

void gate_stop(Gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->stops = true;
    pthread_mutex_unlock(&gate->lock);
    wake_up(gate);
    if (gate->has_thread)
        pthread_join(gate->thread, NULL);
    gate->has_thread = false;
}

void gate_free(Gate *gate)
{
    if (gate->epoll >= 0)
        close(gate->epoll);
    if (gate->wake >= 0)
        close(gate->wake);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

// ------------------------------------------------------------- from the library's threads

Admitted *gate_find(Gate *gate, int socket)
{
    Admitted *found = NULL;

    pthread_mutex_lock(&gate->lock);
    for (size_t i = 0; i < GATE_ADMITTED_MAX; i++) {
        Admitted *place = &gate->admitted[i];
        // The number is found twice where the library has closed a socket and not said so yet.
        if (place->library_socket == socket && (!found || place->number > found->number))
            found = place;
    }
    pthread_mutex_unlock(&gate->lock);
    return found;
}

void gate_step(Gate *gate, Admitted *connection, u32 ms)
{
    pthread_mutex_lock(&gate->lock);
    connection->is_idle = false;
    connection->deadline_ns = ms ? after_ms(ms) : 0;
    pthread_mutex_unlock(&gate->lock);
    wake_up(gate);
}

void gate_idle(Gate *gate, Admitted *connection)
{
    pthread_mutex_lock(&gate->lock);
    connection->is_idle = true;
    connection->idle_since_ns = now_ns();
    connection->deadline_ns = after_ms(IDLE_MS);
    pthread_mutex_unlock(&gate->lock);
    wake_up(gate);
}

void gate_closed(Gate *gate, Admitted *connection)
{
    pthread_mutex_lock(&gate->lock);
    if (connection->library_socket >= 0)
        close(connection->socket);
    connection->library_socket = -1;
    pthread_mutex_unlock(&gate->lock);
    wake_up(gate);
}
