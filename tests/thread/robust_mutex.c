// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// A robust mutex tells the next owner that the last one died: a thread that exited, a process that
// exited, one that was killed, and one that called execve while holding it.
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t *mutex;

static void *lock_and_exit(void *arg)
{
    pthread_mutex_lock(mutex);
    return arg;
}

static void lock_again(const char *after)
{
    int result = pthread_mutex_lock(mutex);
    say("%s: %s\n", after, error_name(result));
    if (result == EOWNERDEAD)
        say("consistent: %d\n", pthread_mutex_consistent(mutex));
    pthread_mutex_unlock(mutex);
}

int main(void)
{
    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, lock_and_exit, NULL);
    pthread_join(thread, NULL);
    lock_again("thread exited");

    static const char *const names[] = {"process exited", "process killed", "process called exec"};
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_mutex_lock(mutex);
            if (how == 0)
                _exit(0);
            if (how == 1)
                raise(SIGKILL);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        wait_and_show("child", child);
        lock_again(names[how]);
    }
    pthread_create(&thread, NULL, lock_and_exit, NULL);
    pthread_join(thread, NULL);
    int result = pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex); // without making it consistent
    say("%s, then %s\n", error_name(result), error_name(pthread_mutex_lock(mutex)));
    return 0;
}
