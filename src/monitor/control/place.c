// SPDX-License-Identifier: MIT
//
// The directory of the sockets. Everything in it is reached through a descriptor that
// has been checked, so nobody can exchange the directory afterwards (L1).
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "monitor/control/control_internal.h"

enum { CANDIDATES = 3 };

// The first two are only used if their parent exists and is closed to others.
static bool candidate(int index, char path[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    unsigned uid = geteuid();

    switch (index) {
    case 0:
        if (!runtime || runtime[0] != '/' || strlen(runtime) > PATH_MAX - 16)
            return false;
        snprintf(path, PATH_MAX, "%s/muninn", runtime);
        return true;
    case 1: snprintf(path, PATH_MAX, "/run/user/%u/muninn", uid); return true;
    default: snprintf(path, PATH_MAX, "/tmp/muninn-%u", uid); return true;
    }
}

// A descriptor for the directory, if it is ours alone. -1 with errno; EPERM: it is not.
static int open_checked(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) {
        errno = errno == ELOOP || errno == ENOTDIR ? EPERM : errno;
        return -1;
    }
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

int place_make(const char **ret_error)
{
    static char error[PATH_MAX + 128];
    char path[PATH_MAX];

    *ret_error = "no directory for control sockets can be made";
    for (int i = 0; i < CANDIDATES; i++) {
        if (!candidate(i, path))
            continue;
        mkdir(path, 0700);
        int fd = open_checked(path);
        if (fd >= 0) {
            place_sweep(fd, NULL);
            return fd;
        }
        snprintf(error, sizeof(error), "%s: %s", path,
                 errno == EPERM ? "not a directory of this user's alone" : strerror(errno));
        *ret_error = error;
    }
    return -1;
}

bool place_each(PlaceFn *fn, void *arg)
{
    char path[PATH_MAX];

    for (int i = 0; i < CANDIDATES; i++) {
        int fd = candidate(i, path) ? open_checked(path) : -1;
        if (fd < 0)
            continue;
        bool found = fn(fd, arg);
        close(fd);
        if (found)
            return true;
    }
    return false;
}

// ------------------------------------------------------------------------ names

void place_name(char ret_name[32], i32 pid, i32 monitor)
{
    snprintf(ret_name, 32, "%d-%d", pid, monitor);
}

bool place_parse(const char *name, i32 *ret_pid, i32 *ret_monitor)
{
    char check[32];
    int pid, monitor;

    if (sscanf(name, "%9d-%9d", &pid, &monitor) != 2)
        return false;
    place_name(check, pid, monitor);
    if (strcmp(check, name) != 0)
        return false;
    *ret_pid = pid;
    *ret_monitor = monitor;
    return true;
}

int place_address(int directory, const char *name, void *ret_address)
{
    struct sockaddr_un *address = ret_address;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%.40s", directory,
             name);
    return (int)sizeof(*address);
}

// ------------------------------------------------------------------- connecting

static bool peer_is_us(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

// Nobody listens, and whoever made it is gone: bound, and not listening yet, looks the same.
static bool is_stale(i32 monitor, int error)
{
    return error == ECONNREFUSED && kill(monitor, 0) != 0 && errno == ESRCH;
}

// A monitor that is stopped accepts nobody, and once its queue is full connect() would wait for it
// for ever. A limit on sending is one on connecting, too.
static void limit_waiting(int fd, int seconds)
{
    struct timeval time = {.tv_sec = seconds};

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

static int connect_to(int directory, const char *name, i32 monitor)
{
    enum { CONNECT_S = 5 };
    struct sockaddr_un address;
    int size = place_address(directory, name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    limit_waiting(fd, CONNECT_S);
    if (connect(fd, (struct sockaddr *)&address, (socklen_t)size) == 0 && peer_is_us(fd)) {
        limit_waiting(fd, 0);
        return fd;
    }
    int error = errno;
    close(fd);
    if (is_stale(monitor, error))
        unlinkat(directory, name, 0);
    return -1;
}

bool place_sweep(int directory, void *unused)
{
    i32 pid, monitor;
    DIR *dir = fdopendir(dup(directory));

    (void)unused;
    if (!dir)
        return false;
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!place_parse(entry->d_name, &pid, &monitor) || kill(monitor, 0) == 0 || errno != ESRCH)
            continue;
        int fd = connect_to(directory, entry->d_name, monitor);
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
    return false;
}

typedef struct Search {
    i32 pid;
    int fd;
} Search;

static bool search(int directory, void *arg)
{
    Search *search_for = arg;
    i32 pid, monitor;
    DIR *dir = fdopendir(dup(directory));

    if (!dir)
        return false;
    rewinddir(dir);
    for (struct dirent *entry; search_for->fd < 0 && (entry = readdir(dir));) {
        if (place_parse(entry->d_name, &pid, &monitor) && pid == search_for->pid)
            search_for->fd = connect_to(directory, entry->d_name, monitor);
    }
    closedir(dir);
    return search_for->fd >= 0;
}

int place_connect(i32 pid)
{
    Search search_for = {pid, -1};

    place_each(search, &search_for);
    return search_for.fd;
}
