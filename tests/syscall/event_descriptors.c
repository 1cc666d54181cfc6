// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// epoll (level, edge, one-shot, nested), eventfd, inotify, timerfd, pidfd and poll agree on what is
// ready.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

static void use_epoll(void)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), counter = eventfd(3, EFD_NONBLOCK), ends[2];
    CHECK(pipe(ends) == 0);
    struct epoll_event add = {EPOLLIN, {.u64 = 0x1122334455667788}}, events[4];
    SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &add));
    SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &add));
    SHOW(epoll_wait(epoll, events, 4, 0));
    say("data %lx events %x\n", (unsigned long)events[0].data.u64, events[0].events);
    uint64_t value;
    SHOW(read(counter, &value, 8));
    say("counter %lu\n", (unsigned long)value);
    SHOW(read(counter, &value, 8));
    SHOW(epoll_wait(epoll, events, 4, 1));
    add.events = EPOLLIN | EPOLLET;
    add.data.u32 = 2;
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &add);
    CHECK(write(ends[1], "abc", 3) == 3);
    SHOW(epoll_wait(epoll, events, 4, 0));
    SHOW(epoll_wait(epoll, events, 4, 0)); // edge: told once
    add.events = EPOLLIN | EPOLLONESHOT;
    SHOW(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &add));
    SHOW(epoll_wait(epoll, events, 4, 0));
    SHOW(epoll_wait(epoll, events, 4, 0));
    int outer = epoll_create1(0);
    add.events = EPOLLIN;
    epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &add);
    value = 1;
    CHECK(write(counter, &value, 8) == 8);
    SHOW(epoll_wait(outer, events, 4, 100));
    SHOW(epoll_ctl(epoll, EPOLL_CTL_DEL, counter, NULL));
    SHOW(epoll_ctl(epoll, EPOLL_CTL_DEL, counter, NULL));
    SHOW(epoll_wait(epoll, events, 0, 0));
    struct timespec moment = {0, 1000000};
    SHOW(syscall(SYS_epoll_pwait2, epoll, events, 4, &moment, NULL, 0));
}

static void use_inotify(void)
{
    char name[] = "watched.XXXXXX", path[64], buffer[4096];
    CHECK(mkdtemp(name) != NULL);
    int fd = inotify_init1(IN_NONBLOCK);
    say("watch %d\n", inotify_add_watch(fd, name, IN_CREATE | IN_DELETE | IN_MODIFY));
    snprintf(path, sizeof path, "%s/file", name);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(write(file, "x", 1) == 1);
    close(file);
    unlink(path);
    rmdir(name);
    ssize_t size = read(fd, buffer, sizeof buffer);
    for (char *p = buffer; p < buffer + size;) {
        struct inotify_event *event = (struct inotify_event *)p;
        say("event %x %s\n", event->mask, event->len ? event->name : "");
        p += sizeof *event + event->len;
    }
}

int main(void)
{
    use_epoll();
    use_inotify();
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    struct pollfd polled[] = {{timer, POLLIN, 0}, {-1, POLLIN, 0}, {12345, POLLIN, 0}};
    SHOW(poll(polled, 2, 60000));
    SHOW(poll(polled, 3, 0));
    say("revents %x %x %x\n", polled[0].revents, polled[1].revents, polled[2].revents);
    pid_t child = fork();
    if (child == 0)
        _exit(4);
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd gone = {pidfd, POLLIN, 0};
    SHOW(poll(&gone, 1, 60000));
    siginfo_t info = {0};
    SHOW(waitid(P_PIDFD, pidfd, &info, WEXITED));
    say("status %d\n", info.si_status);
    SHOW(syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0));
    return 0;
}
