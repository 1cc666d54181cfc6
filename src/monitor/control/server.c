// SPDX-License-Identifier: MIT
//
// The monitor's end of the socket: takes a command from each connection and sends
// what comes of it, without ever waiting for anybody (L2).
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "monitor/control/control_internal.h"

enum { BACKLOG = 16, KEPT_BYTES_MAX = 64 * 1024 * 1024 };

struct ControlCall {
    Control *control;
    int fd;          // -1: this place is free
    bool has_line;   // its command has come
    bool ended;      // control_end(): what is left is to be sent
    char *out;       // packets, each behind its size (u32)
    size_t size, sent, capacity;
};

struct Control {
    int fd, directory;
    char name[32];
    ControlRunFn *run;
    ControlGoneFn *gone;
    void *arg;
    ControlCall calls[CONTROL_CALLS_MAX];
};

const ControlCommand control_commands[CONTROL_COMMANDS] = {
#define MONITOR CONTROL_IN_MONITOR
#define ENGINE CONTROL_IN_ENGINE
#define THREADS CONTROL_IN_THREADS
#define COMMAND(ID, name, old_name, arguments, where, help) \
    [CONTROL_##ID] = {name, old_name, arguments, help, where},
#include "monitor/control/commands.def"
};

// ------------------------------------------------------------------- commands

static bool begins_with_word(const char *line, const char *word, const char **ret_rest)
{
    size_t length = strlen(word);

    if (length == 0 || strncmp(line, word, length) != 0 ||
        (line[length] != '\0' && line[length] != ' '))
        return false;
    *ret_rest = line + length + strspn(line + length, " ");
    return true;
}

ControlCommandId control_find(const char *line, const char **ret_arguments)
{
    line += strspn(line, " ");
    for (int id = 0; id < CONTROL_COMMANDS; id++) {
        const ControlCommand *command = &control_commands[id];
        if (begins_with_word(line, command->name, ret_arguments) ||
            begins_with_word(line, command->old_name, ret_arguments))
            return (ControlCommandId)id;
    }
    *ret_arguments = line;
    return CONTROL_COMMANDS;
}

// ------------------------------------------------------------------ the socket

static int listen_at(int directory, const char *name)
{
    struct sockaddr_un address;
    int size = place_address(directory, name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    unlinkat(directory, name, 0); // of a monitor that had our pid and was killed
    if (bind(fd, (struct sockaddr *)&address, (socklen_t)size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    close(fd);
    return -1;
}

Control *control_open(i32 pid, ControlRunFn *run, ControlGoneFn *gone, void *arg,
                      const char **ret_error)
{
    Control *control = calloc(1, sizeof(*control));

    *ret_error = "no memory";
    if (!control)
        return NULL;
    *control = (Control){.run = run, .gone = gone, .arg = arg};
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++)
        control->calls[i] = (ControlCall){.control = control, .fd = -1};
    control->directory = place_make(ret_error);
    if (control->directory < 0) {
        free(control);
        return NULL;
    }
    place_name(control->name, pid, getpid());
    control->fd = listen_at(control->directory, control->name);
    if (control->fd >= 0)
        return control;
    *ret_error = strerror(errno);
    close(control->directory);
    free(control);
    return NULL;
}

static void drop(ControlCall *call)
{
    if (call->fd < 0)
        return;
    close(call->fd);
    free(call->out);
    *call = (ControlCall){.control = call->control, .fd = -1};
}

void control_forget(Control *control)
{
    if (!control)
        return;
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++)
        drop(&control->calls[i]);
    close(control->fd);
    close(control->directory);
    free(control);
}

// --------------------------------------------------------------------- sending

static bool make_room(ControlCall *call, size_t size)
{
    if (call->size + size <= call->capacity)
        return true;
    size_t capacity = (call->size + size) * 2;
    char *out = call->size - call->sent <= KEPT_BYTES_MAX ? realloc(call->out, capacity) : NULL;
    if (!out)
        return false;
    call->out = out;
    call->capacity = capacity;
    return true;
}

static void put(ControlCall *call, const void *data, size_t size)
{
    memcpy(call->out + call->size, data, size);
    call->size += size;
}

static void put_packet(ControlCall *call, char kind, const void *data, size_t size)
{
    u32 total = (u32)size + 1;

    if (call->fd < 0 || call->ended)
        return;
    if (!make_room(call, sizeof(total) + total)) {
        shutdown(call->fd, SHUT_RDWR); // the next turn finds it hung up
        return;
    }
    put(call, &total, sizeof(total));
    put(call, &kind, 1);
    put(call, data, size);
}

// Sends what can be sent. False: the connection is of no use any more.
static bool flush(ControlCall *call)
{
    while (call->sent < call->size) {
        u32 size;
        memcpy(&size, call->out + call->sent, sizeof(size));
        ssize_t n = send(call->fd, call->out + call->sent + sizeof(size), size,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n != (ssize_t)size)
            return false;
        call->sent += sizeof(size) + size;
    }
    call->sent = call->size = 0;
    return !call->ended;
}

void control_say(ControlCall *call, const char *text, size_t size)
{
    while (size > 0) {
        size_t piece = size < PACKET_BYTES_MAX ? size : PACKET_BYTES_MAX;
        put_packet(call, PACKET_TEXT, text, piece);
        text += piece;
        size -= piece;
    }
}

void control_printf(ControlCall *call, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size > 0)
        control_say(call, text, (size_t)size);
    if (size >= 0)
        free(text);
}

void control_end(ControlCall *call, int status)
{
    char byte = (char)status;

    put_packet(call, PACKET_END, &byte, 1);
    call->ended = true;
    if (!flush(call))
        drop(call);
}

// ------------------------------------------------------------------- receiving

static bool peer_is_us(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void accept_call(Control *control)
{
    int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ControlCall *call = NULL;

    for (size_t i = 0; i < CONTROL_CALLS_MAX && !call; i++) {
        if (control->calls[i].fd < 0)
            call = &control->calls[i];
    }
    if (fd >= 0 && (!call || !peer_is_us(fd)))
        close(fd);
    else if (fd >= 0)
        *call = (ControlCall){.control = control, .fd = fd};
}

static void lose(ControlCall *call)
{
    if (call->has_line && !call->ended)
        call->control->gone(call->control->arg, call);
    drop(call);
}

static void refuse(ControlCall *call, const char *reason)
{
    control_say(call, reason, strlen(reason));
    control_end(call, 1);
}

// Its one command; what comes after it is only looked at for the hang-up.
static void receive(ControlCall *call)
{
    char line[COMMAND_BYTES_MAX + 1];
    ssize_t n = recv(call->fd, line, sizeof(line), MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || call->has_line) {
        lose(call);
        return;
    }
    call->has_line = true;
    if (n > COMMAND_BYTES_MAX) {
        refuse(call, "a command has at most 4000 bytes\n");
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if ((u8)line[i] < ' ' || line[i] == 0x7f) {
            refuse(call, "a command is text in one line\n");
            return;
        }
    }
    line[n] = '\0';
    call->control->run(call->control->arg, call, line);
}

size_t control_fds(const Control *control, struct pollfd fds[CONTROL_FDS_MAX])
{
    size_t count = 0;

    if (!control)
        return 0;
    fds[count++] = (struct pollfd){control->fd, POLLIN, 0};
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        const ControlCall *call = &control->calls[i];
        short events = call->size > call->sent ? POLLIN | POLLOUT : POLLIN;
        fds[count++] = (struct pollfd){call->fd, events, 0};
    }
    return count;
}

void control_turn(Control *control, const struct pollfd *fds, size_t count)
{
    if (!control || count != CONTROL_FDS_MAX)
        return;
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        ControlCall *call = &control->calls[i];
        short events = fds[i + 1].revents;
        if (call->fd < 0 || call->fd != fds[i + 1].fd || events == 0)
            continue;
        if (events & POLLIN)
            receive(call);
        else if (events & (POLLHUP | POLLERR | POLLNVAL))
            lose(call);
        if (call->fd >= 0 && (events & POLLOUT) && !flush(call))
            lose(call);
    }
    if (fds[0].revents & POLLIN)
        accept_call(control);
}

void control_close(Control *control, const char *farewell)
{
    if (!control)
        return;
    unlinkat(control->directory, control->name, 0);
    for (size_t i = 0; i < CONTROL_CALLS_MAX; i++) {
        ControlCall *call = &control->calls[i];
        if (call->fd >= 0 && call->has_line && !call->ended)
            refuse(call, farewell);
    }
    control_forget(control);
}
