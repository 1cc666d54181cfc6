// SPDX-License-Identifier: MIT
//
// Makes each event that the tool events is told of, once. With "wait" it waits for a line of input.
#include <muninn/client.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARENA = 0x7000000, REQUEST = MUNINN_TOOL_BASE('E', 'X') };

static void on_signal(int signal)
{
    (void)signal;
}

static void *run(void *arg)
{
    return arg;
}

static int ask(void)
{
    char word[16] = "client";
    long result = (long)MUNINN_REQUEST(0, REQUEST, word, (unsigned long)ask, 41, 0, 0);
    return result == 42 && strcmp(word, "tool") == 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        puts("waits");
        fflush(stdout);
        getchar();
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "exec") == 0)
        execl(argv[0], argv[0], "child", NULL);
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    syscall(SYS_getpriority, PRIO_PROCESS, 0);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    void *p = mmap((void *)ARENA, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    munmap(p, 8192);
    printf("asked: %d\n", ask());
    fflush(stdout);
    if (fork() == 0)
        _exit(3);
    wait(NULL);
    return 0;
}
