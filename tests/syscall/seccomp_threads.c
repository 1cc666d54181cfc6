// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// RUN[own]: own
// RUN[sync]: sync
// RUN[sync-refused]: sync-refused
// RUN[kill-thread]: kill-thread
// RUN[kill-leader]: kill-leader
// RUN[kill-process]: kill-process
// RUN[strict]: strict
// STRESS: signals
//
// Filters belong to threads: a new thread inherits, the others are untouched unless TSYNC asks for
// them; KILL_THREAD ends one thread only, and the leader's death is what the parent sees.
#include "filter.h"
#include <pthread.h>
#include <semaphore.h>

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

static sem_t ready, go;
static const int *call = CALLS(SYS_getppid);

static void show_own(const char *who)
{
    long result = syscall(SYS_getppid);
    say("%s: getppid %s, seccomp %d\n", who, result > 0 ? "works" : error_name(errno),
        prctl(PR_GET_SECCOMP));
}

static void *look(void *who)
{
    sem_post(&ready);
    sem_wait(&go);
    show_own(who);
    say("%s: no_new_privs %d\n", (const char *)who, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return NULL;
}

static void *install_and_look(void *who)
{
    no_new_privileges();
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EXDEV, SECCOMP_RET_ALLOW, 0));
    return look(who);
}

static pthread_t start(void *(*entry)(void *), void *argument)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, entry, argument) == 0);
    return thread;
}

static void finish(pthread_t thread)
{
    sem_post(&go);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void own(void)
{
    pthread_t before = start(look, "before");
    sem_wait(&ready);
    no_new_privileges();
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EBUSY, SECCOMP_RET_ALLOW, 0));
    finish(before);
    finish(start(look, "after"));
    finish(start(install_and_look, "its own"));
    show_own("main");
}

static void sync_all(void)
{
    pthread_t before = start(look, "before");
    sem_wait(&ready);
    no_new_privileges();
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EBUSY, SECCOMP_RET_ALLOW,
                        SECCOMP_FILTER_FLAG_TSYNC));
    finish(before);
    show_own("main");
}

static void sync_refused(void)
{
    pthread_t other = start(install_and_look, "other");
    sem_wait(&ready);
    no_new_privileges();
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EBUSY, SECCOMP_RET_ALLOW,
                        SECCOMP_FILTER_FLAG_TSYNC) > 0);
    SHOW(filter_install(call, SECCOMP_RET_ERRNO | EBUSY, SECCOMP_RET_ALLOW,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH));
    show_own("main");
    finish(other);
}

static void *die(void *action)
{
    no_new_privileges();
    CHECK(filter_install(call, (uint32_t)(uintptr_t)action, SECCOMP_RET_ALLOW, 0) == 0);
    syscall(SYS_getppid);
    say("not reached\n");
    return NULL;
}

static void *die_strictly(void *unused)
{
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    syscall(SYS_getppid);
    say("not reached\n");
    return unused;
}

static void *outlive(void *unused)
{
    wait_until_dead(getpid());
    say("outlived\n");
    syscall(SYS_exit, 0);
    return unused;
}

static void in_child(const char *what)
{
    if (strcmp(what, "own") == 0)
        own();
    else if (strcmp(what, "sync") == 0)
        sync_all();
    else if (strcmp(what, "sync-refused") == 0)
        sync_refused();
    else if (strcmp(what, "kill-thread") == 0)
        pthread_join(start(die, (void *)SECCOMP_RET_KILL_THREAD), NULL);
    else if (strcmp(what, "strict") == 0)
        pthread_join(start(die_strictly, NULL), NULL);
    else if (strcmp(what, "kill-process") == 0)
        pthread_join(start(die, (void *)(uintptr_t)SECCOMP_RET_KILL_PROCESS), NULL);
    else {
        start(outlive, NULL);
        die((void *)SECCOMP_RET_KILL_THREAD);
    }
    _exit(4);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    pid_t child = fork();
    if (child == 0)
        in_child(argv[1]);
    wait_and_show("child", child);
    return 0;
}
