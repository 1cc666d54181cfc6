// SPDX-License-Identifier: MIT
// BUILD: -O2 -Wno-stringop-overread -Wno-stringop-overflow
//
// iovec calls, sendmsg and recvmsg with several parts, descriptors and credentials in control
// messages, sendmmsg, truncation flags, socket options, and a TCP conversation over loopback.
#include "guest.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void descriptors_in_messages(int from, int to)
{
    int sent[2] = {memfd_create("passed", 0), open("/dev/null", O_RDONLY)};
    CHECK(write(sent[0], "contents", 8) == 8);
    union {
        char space[CMSG_SPACE(sizeof sent)];
        struct cmsghdr align;
    } control = {{0}};
    char part1[] = "first ", part2[] = "second";
    struct iovec parts[] = {{part1, 6}, {part2, 6}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof sent);
    memcpy(CMSG_DATA(header), sent, sizeof sent);
    SHOW(sendmsg(from, &message, 0));

    char buffer[64] = "", back[16] = "";
    memset(&control, 0, sizeof control);
    struct iovec into[] = {{buffer, 4}, {buffer + 4, 60}};
    message.msg_iov = into;
    message.msg_controllen = sizeof control;
    SHOW(recvmsg(to, &message, MSG_CMSG_CLOEXEC));
    int got[2] = {-1, -1};
    memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    CHECK(pread(got[0], back, 8, 0) == 8);
    say("%s, fds new %d, contents %s, cloexec %d\n", buffer, got[0] > sent[1] && got[1] > got[0],
        back, fcntl(got[0], F_GETFD));
}

static void truncation(int from, int to)
{
    char buffer[4];
    CHECK(send(from, "longer than four", 16, 0) == 16);
    struct iovec into = {buffer, 4};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1};
    SHOW(recvmsg(to, &message, 0));
    say("truncated %d\n", !!(message.msg_flags & MSG_TRUNC));
    struct mmsghdr batch[3];
    struct iovec parts[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    memset(batch, 0, sizeof batch);
    for (int i = 0; i < 3; i++) {
        batch[i].msg_hdr.msg_iov = &parts[i];
        batch[i].msg_hdr.msg_iovlen = 1;
    }
    SHOW(sendmmsg(from, batch, 3, 0));
    char space[3][8];
    for (int i = 0; i < 3; i++)
        parts[i] = (struct iovec){space[i], 8};
    SHOW(recvmmsg(to, batch, 3, MSG_DONTWAIT, NULL));
    say("lengths %u %u %u %.3s\n", batch[0].msg_len, batch[1].msg_len, batch[2].msg_len, space[2]);
    SHOW(recv(to, buffer, 4, MSG_DONTWAIT));
}

static void loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, value = 0;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    pid_t child = fork();
    if (child == 0) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(client, (struct sockaddr *)&address, length) != 0)
            _exit(1);
        char buffer[100000];
        memset(buffer, 'z', sizeof buffer);
        for (ssize_t done = 0, n; done < 100000; done += n)
            if ((n = write(client, buffer + done, 100000 - done)) <= 0)
                _exit(2);
        shutdown(client, SHUT_WR);
        _exit(read(client, buffer, 10) == 3 ? 0 : 3);
    }
    int server = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
    char buffer[4096];
    long total = 0;
    for (ssize_t got; (got = recv(server, buffer, sizeof buffer, 0)) > 0;)
        total += got;
    length = sizeof value;
    CHECK(getsockopt(server, IPPROTO_TCP, TCP_NODELAY, &value, &length) == 0);
    say("received %ld, option %d length %u, peer is loopback %d\n", total, value, length,
        ntohl(address.sin_addr.s_addr) == INADDR_LOOPBACK);
    CHECK(send(server, "bye", 3, MSG_NOSIGNAL) == 3);
    wait_and_show("client", child);
}

int main(void)
{
    int stream[2], datagram[2], ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagram) == 0);
    descriptors_in_messages(stream[0], stream[1]);
    truncation(datagram[0], datagram[1]);
    CHECK(pipe(ends) == 0);
    struct iovec many[] = {{"one ", 4}, {"", 0}, {"two ", 4}, {"three\n", 6}};
    SHOW(writev(ends[1], many, 4));
    char a[5] = "", b[20] = "";
    struct iovec into[] = {{a, 4}, {b, 19}};
    SHOW(readv(ends[0], into, 2));
    say("%s|%s", a, b);
    SHOW(writev(ends[1], many, 2000));
    SHOW(writev(ends[1], many, -1));
    loopback();
    return 0;
}
