// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// A daemon's habits: closing every descriptor there could be, by close, close_range and closefrom,
// standard ones included, and going on with threads, maps and new code afterwards.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 3; // ".", ".." and the directory itself
}

static void *thread_body(void *arg)
{
    return arg;
}

int main(void)
{
    for (int i = 0; i < 20; i++)
        CHECK(open("/dev/null", O_RDONLY) >= 0);
    say("descriptors %d\n", count_descriptors());
    SHOW(close_range(3, ~0U, 0));
    say("descriptors %d\n", count_descriptors());
    for (int fd = 3; fd < 5000; fd++)
        if (close(fd) == 0)
            say("%d was open\n", fd);
    closefrom(3);
    SHOW(syscall(SYS_close_range, 5, 4, 0));
    SHOW(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
    SHOW(close_range(3, ~0U, CLOSE_RANGE_UNSHARE));

    int out = fcntl(1, F_DUPFD, 3);
    say("duplicate %d\n", out);
    close(0), close(1), close(2);
    int first = open("/dev/null", O_RDWR), second = open("/dev/null", O_RDWR);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_body, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    dup2(out, 1);
    say("reopened as %d %d\n", first, second);
    pid_t child = fork();
    if (child == 0) {
        close_range(0, ~0U, 0);
        _exit(open("/dev/null", O_RDONLY));
    }
    wait_and_show("child without descriptors", child);
    return 0;
}
