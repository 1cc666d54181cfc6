// SPDX-License-Identifier: MIT
//
// Makes calls and prints what came of each. A rule of --inject changes the answers; strace, with
// the same rule, is asked what they should be.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void count(int number)
{
    (void)number;
    seen++;
    getppid(); // a call of the handler's, between a call and its repetition
}

static void say(const char *what, long result)
{
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

static void *in_thread(void *unused)
{
    say("thread getpgrp", syscall(SYS_getpgid, 0) > 0);
    say("thread getpgrp", syscall(SYS_getpgid, 0) > 0);
    return unused;
}

int main(void)
{
    char buffer[8] = "unread";
    pthread_t thread;

    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    signal(SIGUSR1, count);
    for (int i = 0; i < 6; i++)
        say("getpgid", syscall(SYS_getpgid, 0) > 0);
    int fd = open("/dev/zero", O_RDONLY);
    say("open", fd >= 0 ? 0 : -1);
    say("read", read(fd, buffer, 4));
    printf("buffer %.6s\n", buffer[0] ? buffer : "zeros");
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("mmap", page == MAP_FAILED ? -1 : 0);
    say("munmap", page == MAP_FAILED ? 0 : munmap(page, 4096));
    say("close", close(fd));
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    fflush(stdout);
    if (fork() == 0) {
        say("child getpgid", syscall(SYS_getpgid, 0) > 0);
        exit(0);
    }
    wait(NULL);
    printf("signals %d\n", (int)seen);
    return 3;
}
