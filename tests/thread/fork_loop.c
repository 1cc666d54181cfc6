// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// Fork in a loop with every kind of wait status; fork from a thread leaves one thread in the child
// and memory that is a copy; pthread_atfork handlers run around it.
#include "guest.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int prepared, in_parent, in_child;
static volatile int shared_looking = 1;

static void prepare(void) { prepared++; }
static void parent(void) { in_parent++; }
static void child_handler(void) { in_child++; }

static void *fork_in_thread(void *arg)
{
    pid_t child = fork();
    if (child == 0) {
        shared_looking = 99;
        bool one_thread = access("/proc/self/task", F_OK) == 0 &&
                          syscall(SYS_gettid) == getpid();
        pthread_t again;
        void *value;
        pthread_create(&again, NULL, (void *(*)(void *))strdup, "thread in a child");
        pthread_join(again, &value);
        say("%s, alone %d, in_child %d\n", (char *)value, one_thread, in_child);
        _exit(12);
    }
    wait_and_show("forked in a thread", child);
    return arg;
}

int main(void)
{
    long exits = 0, signals = 0;
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 4 == 3)
                raise(i % 8 == 3 ? SIGTERM : SIGKILL);
            _exit(i);
        }
        int status;
        struct rusage usage;
        CHECK(wait4(child, &status, 0, &usage) == child);
        if (WIFEXITED(status))
            exits += WEXITSTATUS(status);
        else
            signals += WTERMSIG(status);
    }
    say("exits %ld signals %ld\n", exits, signals);
    pthread_atfork(prepare, parent, child_handler);
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    pthread_join(thread, NULL);
    say("atfork %d %d %d, memory %d\n", prepared, in_parent, in_child, shared_looking);

    pid_t children[20];
    for (int i = 0; i < 20; i++)
        if ((children[i] = fork()) == 0)
            _exit(i);
    int sum = 0, status;
    for (int polls = 0; sum < 20;) {
        pid_t done = waitpid(-1, &status, WNOHANG);
        if (done > 0)
            sum++;
        else if (polls++ > 20000)
            break;
        else
            usleep(200);
    }
    say("reaped without hanging: %d\n", sum);
    SHOW(waitpid(-1, &status, WNOHANG));
    SHOW(waitpid(children[0], &status, 0));
    return 0;
}
