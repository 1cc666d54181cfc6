// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// A blocking call interrupted by a handler fails with EINTR, or goes on when the handler was
// installed with SA_RESTART, as the man page of each call promises.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/wait.h>

static volatile sig_atomic_t hits;
static int ends[2], handled[2];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    hits++;
    CHECK(write(handled[1], "h", 1) == 1);
}

// A child signals us when we sleep, and when the signal was handled makes the call succeed.
static pid_t start_sender(int fd_to_feed)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        wait_until_asleep(parent);
        kill(parent, SIGUSR1);
        char byte;
        CHECK(read(handled[0], &byte, 1) == 1);
        if (fd_to_feed >= 0 && write(fd_to_feed, "x", 1) != 1)
            _exit(1);
        _exit(0);
    }
    return child;
}

static void try_calls(void)
{
    char byte;
    hits = 0;
    pid_t child = start_sender(ends[1]);
    SHOW(read(ends[0], &byte, 1));
    waitpid(child, NULL, 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (read(ends[0], &byte, 1) == 1)
        ;
    fcntl(ends[0], F_SETFL, 0);

    int sockets[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    child = start_sender(sockets[1]);
    SHOW(recv(sockets[0], &byte, 1, 0));
    waitpid(child, NULL, 0);
    close(sockets[0]), close(sockets[1]);

    child = start_sender(-1);
    int status = 0;
    pid_t waited = waitpid(child, &status, 0);
    say("waitpid: %s\n", waited == child ? "child" : error_name(errno));
    if (waited != child)
        waitpid(child, &status, 0);

    child = start_sender(-1);
    struct pollfd nothing = {ends[0], POLLIN, 0};
    SHOW(poll(&nothing, 1, 60000));
    waitpid(child, NULL, 0);
    child = start_sender(-1);
    struct timespec request = {60, 0}, rest = {99, 9};
    SHOW(nanosleep(&request, &rest));
    say("remainder in range %d\n", rest.tv_sec < 60);
    waitpid(child, NULL, 0);
    say("signals %d\n", hits);
}

int main(void)
{
    CHECK(pipe(ends) == 0 && pipe(handled) == 0);
    on_signal(SIGUSR1, handler, SA_RESTART);
    say("with SA_RESTART\n");
    try_calls();
    on_signal(SIGUSR1, handler, 0);
    say("without\n");
    try_calls();
    return 0;
}
