// SPDX-License-Identifier: MIT
//
// Asking a program's monitor from another program of ours that goes on running: the
// viewer's server, which has threads.
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/control/control_internal.h"

int control_ask(i32 pid, const char *command, int timeout_ms, ControlAnswerFn *fn, void *arg)
{
    // ctl_ask() receives into a buffer that there is once.
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    int status = ctl_ask(pid, command, timeout_ms, fn, arg);
    pthread_mutex_unlock(&lock);
    return status;
}

i32 control_find_monitor(i32 pid)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    int fd = place_connect(pid);

    if (fd < 0)
        return 0;
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    close(fd);
    return known ? peer.pid : 0;
}
