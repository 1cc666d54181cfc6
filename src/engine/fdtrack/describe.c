// SPDX-License-Identifier: MIT
//
// What a descriptor is, in the incumbent's words: "file descriptor 3: /etc/passwd",
// "AF_INET socket 4: 127.0.0.1:80 <-> unbound". Only raw system calls, so that neither
// errno nor the client's state is touched.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/descriptors/descriptors.h"
#include "engine/fdtrack/fdtrack_internal.h"

enum { NAME_MAX_BYTES = 108 };

typedef union Address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage storage;
} Address;

bool fd_is_open(i32 fd)
{
    return fd >= 0 && !descriptor_is_hidden(fd) &&
           raw_syscall3(SYS_fcntl, (u64)fd, F_GETFD, 0) >= 0;
}

// "1.2.3.4:80", "[::1]:80"
static void internet_text(const Address *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof(host));
        text_format(text, size, "%s:%u", host, ntohs(address->in.sin_port));
    } else {
        inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
        text_format(text, size, "[%s]:%u", host, ntohs(address->in6.sin6_port));
    }
}

static bool is_bound(const Address *address)
{
    return address->any.sa_family == AF_INET ? address->in.sin_port : address->in6.sin6_port;
}

static bool socket_name(u64 nr, i32 fd, Address *ret, socklen_t *ret_length)
{
    memset(ret, 0, sizeof(*ret));
    *ret_length = sizeof(*ret);
    return raw_syscall3(nr, (u64)fd, (u64)ret, (u64)ret_length) == 0;
}

static void describe_internet(i32 fd, int domain, char *text)
{
    Address address;
    socklen_t length;
    char here[NAME_MAX_BYTES] = "<unbound>", there[NAME_MAX_BYTES] = "unbound";
    if (socket_name(SYS_getsockname, fd, &address, &length) && is_bound(&address))
        internet_text(&address, here, sizeof(here));
    if (socket_name(SYS_getpeername, fd, &address, &length))
        internet_text(&address, there, sizeof(there));
    text_format(text, FD_TEXT_MAX, "%s socket %d: %s <-> %s",
                domain == AF_INET ? "AF_INET" : "AF_INET6", fd, here, there);
}

// A name of the abstract kind begins with a NUL, shown as @.
static void describe_unix(i32 fd, FdName *ret_name)
{
    Address address;
    socklen_t length;
    char path[NAME_MAX_BYTES + 2] = "<unknown>";
    size_t before = offsetof(struct sockaddr_un, sun_path);
    if (socket_name(SYS_getsockname, fd, &address, &length) && length > before) {
        size_t count = min_u64(length - before, NAME_MAX_BYTES);
        memcpy(path, address.un.sun_path, count);
        path[count] = 0;
        if (!path[0])
            path[0] = '@';
    }
    text_format(ret_name->text, FD_TEXT_MAX, "AF_UNIX socket %d: ", fd);
    size_t at = strlen(ret_name->text);
    text_format(ret_name->text + at, FD_TEXT_MAX - at, "%s", path);
    ret_name->path = path[0] == '/' ? (u32)at : 0;
}

static void describe_socket(i32 fd, FdName *ret_name)
{
    int domain = -1;
    socklen_t length = sizeof(domain);
    raw_syscall6(SYS_getsockopt, (u64)fd, SOL_SOCKET, SO_DOMAIN, (u64)&domain, (u64)&length, 0);
    ret_name->is_socket = true;
    if (domain == AF_INET || domain == AF_INET6)
        describe_internet(fd, domain, ret_name->text);
    else if (domain == AF_UNIX)
        describe_unix(fd, ret_name);
    else
        text_format(ret_name->text, FD_TEXT_MAX, "pf-%d socket %d:", domain, fd);
}

static void describe_file(i32 fd, FdName *ret_name)
{
    char link[40], path[FD_TEXT_MAX - 32];
    text_format(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
    i64 length = raw_syscall3(SYS_readlink, (u64)link, (u64)path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = 0;
    text_format(ret_name->text, FD_TEXT_MAX, "file descriptor %d:", fd);
    if (length <= 0)
        return;
    size_t at = strlen(ret_name->text);
    text_format(ret_name->text + at, FD_TEXT_MAX - at, " %s", path);
    ret_name->file = (u32)at + 1;
    ret_name->path = path[0] == '/' ? ret_name->file : 0;
}

void describe_fd(i32 fd, FdName *ret_name)
{
    struct stat status;
    *ret_name = (FdName){0};
    if (raw_syscall2(SYS_fstat, (u64)fd, (u64)&status) == 0 && S_ISSOCK(status.st_mode))
        describe_socket(fd, ret_name);
    else
        describe_file(fd, ret_name);
}
