// SPDX-License-Identifier: MIT
//
// A program to talk to. Its argument says what it does after a few findings:
//   spin         computes, without any system call
//   spin-threads the same in four threads
//   sleep        sleeps in read()
//   fork         has a child that makes a finding and sleeps, and waits for it
//   exec PROGRAM executes another program ten times, in children of fork and vfork
//   exec-self N  executes itself with N - 1, then ends
//   requests     gives commands to itself
//   exit         ends at once
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muninn/client.h"

enum { INVALID_READ = 2, FOUND = 3 };

typedef unsigned long Word;

__attribute__((noinline, noclone)) int muninn_test_finding(Word kind, Word v0, Word v1, Word v2,
                                                           const char *text, Word part)
{
    __asm__ volatile("" : : "r"(kind), "r"(v0), "r"(v1), "r"(v2), "r"(text), "r"(part));
    return -1;
}

static void *spin(void *arg)
{
    volatile unsigned long i = 0;
    (void)arg;
    for (;;)
        i++;
    return NULL;
}

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static int sleep_for_ever(void)
{
    char byte;
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    return read(ends[0], &byte, 1) == 1;
}

static int fork_and_wait(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        muninn_test_finding(INVALID_READ, 99, 0, 0, NULL, 0);
        printf("child %d\n", getpid());
        ready();
        _exit(sleep_for_ever());
    }
    waitpid(child, &status, 0);
    printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

static int exec_often(const char *program)
{
    int bad = 0, status;
    for (int i = 0; i < 10; i++) {
        pid_t child = i % 2 ? vfork() : fork();
        if (child == 0) {
            if (!(i % 2))
                muninn_test_finding(INVALID_READ, 99, 0, 0, NULL, 0);
            execl(program, program, (char *)NULL);
            _exit(9);
        }
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    return bad;
}

static int exec_self(char **argv, int left)
{
    char number[16];
    if (left <= 0) {
        puts("the end");
        return 0;
    }
    snprintf(number, sizeof(number), "%d", left - 1);
    execl("/proc/self/exe", argv[0], "exec-self", number, (char *)NULL);
    return 9;
}

static int give_commands(void)
{
    int found = MUNINN_MONITOR_COMMAND("v.info n_errs_found here");
    int tools = MUNINN_MONITOR_COMMAND("echo from the client");
    int unknown = MUNINN_MONITOR_COMMAND("no such command");
    int outside = MUNINN_MONITOR_COMMAND("threads");
    printf("%d %d %d %d\n", found, tools, unknown, outside);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "exit";
    pthread_t thread;

    if (strcmp(what, "exec-self") == 0)
        return exec_self(argv, argc > 2 ? atoi(argv[2]) : 0);
    if (strcmp(what, "fork") == 0)
        return fork_and_wait();
    for (Word i = 0; i < FOUND; i++)
        for (Word times = 0; times <= i; times++)
            muninn_test_finding(INVALID_READ, i, 0, 0, NULL, 0);
    if (strcmp(what, "requests") == 0)
        return give_commands();
    ready();
    if (strcmp(what, "spin-threads") == 0)
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, spin, NULL);
    if (strncmp(what, "spin", 4) == 0)
        spin(NULL);
    if (strcmp(what, "sleep") == 0)
        return sleep_for_ever();
    if (strcmp(what, "exec") == 0 && argc > 2)
        return exec_often(argv[2]);
    return 0;
}
