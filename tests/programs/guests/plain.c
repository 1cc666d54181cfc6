// SPDX-License-Identifier: MIT
//
// C guest for every kind of link (glibc or musl, static, dynamic, static PIE): stdio, malloc,
// threads, thread-local storage, signals, setjmp, fork, floating point, time and the environment.
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 1000 };

static _Thread_local int calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static sigjmp_buf back;

static void *count(void *step)
{
    for (int i = 0; i < ROUNDS; i++) {
        calls++;
        pthread_mutex_lock(&lock);
        total += (long)step;
        pthread_mutex_unlock(&lock);
        free(malloc((size_t)i));
    }
    return (void *)(long)calls;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, (void *)(i + 1));
    long seen = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        seen += (long)result;
    }
    printf("threads: %ld calls, total %ld, main's own %d\n", seen, total, calls);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    siglongjmp(back, info->si_addr == NULL ? number : -number);
}

static void catch_fault(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    int number = sigsetjmp(back, 1);
    if (number == 0) {
        volatile int *nowhere = NULL;
        *nowhere = 1;
    }
    printf("caught signal %d\n", number);
}

static void fork_child(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        printf("in the child\n");
        exit(42);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    printf("child exited %d with %d\n", WIFEXITED(status), WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    printf("%d arguments, last %s\n", argc, argv[argc - 1]);
    run_threads();
    catch_fault();
    fork_child();
    time_t epoch = 86400;
    char text[64];
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", gmtime(&epoch));
    printf("%s %.12f %a %s\n", text, sin(argc) + sqrt(2.0), 0.1, strerror(ENOENT));
    struct timespec now;
    int clock = clock_gettime(CLOCK_MONOTONIC, &now);
    printf("clock %d, home %s\n", clock, getenv("HOME") ? "set" : "unset");
    fprintf(stderr, "to stderr\n");
    return argc;
}
