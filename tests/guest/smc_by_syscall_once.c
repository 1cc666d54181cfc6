// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// The kernel writes to pages that hold translated code, by calls that take from somewhere what they
// write: a datagram, an edge of a poll, a signal, the bytes of a pipe. Nothing is lost, and no
// count is short.
#include "smc.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

static uint8_t *page;

// Code in both pages has been run: they are full of it in the engine's eyes.
static void run_code(int value)
{
    for (int i = 0; i < 2; i++) {
        put_return(page + i * PAGE + 2048, value + i);
        if (call_code(page + i * PAGE + 2048) != value + i)
            say("FAIL wrong code\n");
    }
}

static void datagrams(void)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(send(ends[1], "datagram", 8, 0) == 8);
        run_code(i);
        SHOW(recv(ends[0], page, 8, MSG_DONTWAIT));
        say("%.8s\n", page);
    }
    CHECK(send(ends[1], "headers", 7, 0) == 7);
    run_code(10);
    struct iovec part = {page + 8, 7};
    struct msghdr *message = (struct msghdr *)(page + 512);
    *message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    run_code(11);
    SHOW(recvmsg(ends[0], message, MSG_DONTWAIT));
    say("%.7s\n", page + 8);
}

static void whole_pipe(void)
{
    static char bytes[PAGE + 100];
    int ends[2];
    CHECK(pipe(ends) == 0);
    memset(bytes, 'x', sizeof bytes);
    CHECK(write(ends[1], bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    run_code(20);
    SHOW(read(ends[0], page + PAGE - 100, 300));
    run_code(21);
    struct iovec parts[] = {{bytes, 50}, {page, 50}, {page + PAGE, 50}};
    SHOW(readv(ends[0], parts, 3));
}

static void edges(void)
{
    int counter = eventfd(3, EFD_NONBLOCK), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = 77};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) == 0);
    run_code(30);
    SHOW(epoll_wait(set, (struct epoll_event *)page, 1, 0));
    say("%u\n", ((struct epoll_event *)page)->data.u32);
    run_code(31);
    SHOW(read(counter, page + 64, 8));
    say("%lu\n", *(uint64_t *)(page + 64));
}

static void signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    raise(SIGUSR1);
    run_code(40);
    SHOW(read(fd, page, sizeof(struct signalfd_siginfo)));
    raise(SIGUSR1);
    run_code(41);
    SHOW(sigwaitinfo(&set, (siginfo_t *)page));
}

int main(void)
{
    page = map_pages(2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    datagrams();
    whole_pipe();
    edges();
    signals();
    run_code(50);
    void *volatile nowhere = (void *)8;
    SHOW(recv(0, nowhere, 1, 0));
    SHOW(pipe(nowhere));
    return 0;
}
