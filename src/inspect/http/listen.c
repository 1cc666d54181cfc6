// SPDX-License-Identifier: MIT
//
// Where the server listens, and what its address is called.
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspect/http/server.h"

enum { BACKLOG = 512 };

static struct addrinfo *find_address(const ServerConfig *config, char **ret_error)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];

    snprintf(port, sizeof(port), "%u", config->port);
    int failure = getaddrinfo(config->host ? config->host : "127.0.0.1", port, &hints, &found);
    if (failure == 0)
        return found;
    if (asprintf(ret_error, "--host=%s: %s", config->host ? config->host : "127.0.0.1",
                 gai_strerror(failure)) < 0)
        *ret_error = NULL;
    return NULL;
}

static int listen_at(const struct addrinfo *address)
{
    int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int failure = -errno;
        close(fd);
        return failure;
    }
    return fd;
}

static void fill_place(const ServerConfig *config, int fd, ServerPlace *place,
                       char url[SERVER_URL_BYTES])
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof(bound);
    const struct sockaddr_in6 *six = (const void *)&bound;
    const struct sockaddr_in *four = (const void *)&bound;

    getsockname(fd, (struct sockaddr *)&bound, &size);
    bool is_six = bound.ss_family == AF_INET6;
    place->port = ntohs(is_six ? six->sin6_port : four->sin_port);
    place->is_any = is_six ? IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr)
                           : four->sin_addr.s_addr == INADDR_ANY;
    snprintf(place->host, sizeof(place->host), "%s", config->host ? config->host : "127.0.0.1");
    snprintf(place->cookie, sizeof(place->cookie), "muninn-%u", place->port);
    // "0.0.0.0" is no address to go to.
    const char *shown = place->is_any ? "localhost" : place->host;
    bool needs_brackets = strchr(shown, ':') != NULL;
    snprintf(url, SERVER_URL_BYTES, "http://%s%s%s:%u/?token=%s",
             needs_brackets ? "[" : "", shown, needs_brackets ? "]" : "", place->port,
             place->token);
}

int server_listen(const ServerConfig *config, ServerPlace *place, char url[SERVER_URL_BYTES],
                  char **ret_error)
{
    struct addrinfo *address = find_address(config, ret_error);

    if (!address)
        return -1;
    int fd = listen_at(address);
    freeaddrinfo(address);
    if (fd >= 0) {
        fill_place(config, fd, place, url);
        return fd;
    }
    if (asprintf(ret_error, "cannot listen on %s, port %u: %s",
                 config->host ? config->host : "127.0.0.1", config->port, strerror(-fd)) < 0)
        *ret_error = NULL;
    return -1;
}
