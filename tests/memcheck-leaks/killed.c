// SPDX-License-Identifier: MIT
//
// Killed by SIGKILL with blocks of three threads, one of which has ended: "now". "fork": so is a
// child that has made a mistake before. "children": children are made while threads allocate, and
// allocate themselves; whoever does not end is killed by nobody.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept;

static void *ends(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        free(malloc(10));
    return malloc(7);
}

static void *waits(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        free(malloc(10));
    __atomic_store_n(&kept, malloc(50000), __ATOMIC_RELEASE);
    for (;;)
        pause();
}

static void *allocates(void *seed)
{
    unsigned s = (unsigned)(long)seed;
    void *blocks[64] = {0};
    for (;;) {
        s = s * 1103515245 + 12345;
        unsigned i = (s >> 16) % 64;
        free(blocks[i]);
        blocks[i] = malloc((s >> 8) % 200000);
    }
    return NULL;
}

static pthread_t start(void *(*fn)(void *), long seed)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fn, (void *)seed);
    return thread;
}

static void die_now(void)
{
    start(waits, 0);
    pthread_join(start(ends, 0), NULL);
    while (!__atomic_load_n(&kept, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (int i = 0; i < 100; i++)
        memset(malloc(1000), 0, 1000);
    raise(SIGKILL);
}

static int fork_and_die(void)
{
    int status;
    char *block = malloc(100);
    if (fork() == 0) {
        volatile char *p = malloc(24);
        free((void *)p);
        p[0] = 1;
        memset(malloc(25), 0, 25);
        raise(SIGKILL);
    }
    wait(&status);
    free(block);
    return 0;
}

static int make_children(void)
{
    for (long i = 0; i < 3; i++)
        start(allocates, i);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            for (size_t j = 0; j < 50; j++)
                free(malloc(j * 5000));
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[1], "fork") == 0)
        return fork_and_die();
    if (strcmp(argv[1], "children") == 0)
        return make_children();
    die_now();
}
