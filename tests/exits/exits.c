// SPDX-License-Identifier: MIT
//
// A process that ends: in one of many ways, while its other threads hold one of many locks.
// tests/exits/run has the tables and compares what is left of it with a native run.
//
//     exits WAY HOLDER        in a directory of its own, with descriptor 3 open on a file
//
// What it leaves must not depend on chance: the holders write nowhere, and whatever a way leaves
// (unflushed streams, offsets, a shared counter) is the main thread's.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muninn/client.h"

enum { HOLDERS = 3, ROUNDS = 20 };

static volatile int *shared;      // in a file: what other processes would see
static volatile int rounds;       // of all holders together
static volatile int holders_stop;
static volatile int is_locked;
static int quiet_pipe[2];
static FILE *kept, *input;

// ------------------------------------------------------------------ holders, a round each

static void hold_nothing(long i)
{
    (void)i;
    usleep(1000);
}

static void hold_heap(long i)
{
    free(realloc(malloc(64 + i % 4096), 8192));
}

static void hold_environment(long i)
{
    char value[32];
    snprintf(value, sizeof(value), "%ld", i % 50);
    setenv(i % 2 ? "EXITS_A" : "EXITS_B", value, 1);
}

static void hold_streams(long i)
{
    FILE *stream = fopen("/dev/null", "w");
    fprintf(stream, "%ld\n", i);
    fclose(stream);
}

static void hold_one_stream(long i)
{
    static FILE *stream;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!stream)
        stream = fopen("/dev/null", "w");
    pthread_mutex_unlock(&lock);
    flockfile(stream);
    fprintf(stream, "%ld\n", i);
    fflush(stream);
    funlockfile(stream);
}

static void hold_loader(long i)
{
    (void)i;
    void *object = dlopen("libm.so.6", RTLD_NOW);
    if (object)
        dlclose(object);
}

static void hold_mappings(long i)
{
    char *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory[i % 65536] = 1;
    mprotect(memory, 4096, PROT_READ);
    munmap(memory, 65536);
}

static void hold_search(long i)
{
    (void)i;
    MUNINN_DO_LEAK_CHECK;
}

static void hold_fork(long i)
{
    (void)i;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void hold_vfork(long i)
{
    (void)i;
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void hold_sleep(long i)
{
    char byte;
    if (i > ROUNDS && read(quiet_pipe[0], &byte, 1) < 0)
        return;
}

static void hold_findings(long i)
{
    char *block = malloc(16);
    __asm__ volatile("" : "+r"(block));
    if (block[i % 16] == 5) // undefined: a finding
        rounds += 0;
    free(block);
}

static void hold_signals(long i)
{
    (void)i;
    pthread_kill(pthread_self(), SIGUSR1);
}

static const struct {
    const char *name;
    void (*round)(long i);
} holders[] = {
    {"nothing", hold_nothing},   {"heap", hold_heap},         {"environment", hold_environment},
    {"streams", hold_streams},   {"stream", hold_one_stream}, {"loader", hold_loader},
    {"mappings", hold_mappings}, {"search", hold_search},     {"fork", hold_fork},
    {"vfork", hold_vfork},       {"sleep", hold_sleep},       {"findings", hold_findings},
    {"signals", hold_signals},
};

static void *hold(void *round)
{
    for (long i = 0; !holders_stop; i++) {
        ((void (*)(long))round)(i);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

// ------------------------------------------------------------------ ways to end

static void end_by_return(void)
{
    exit(21);
}

static void end_at_once(void)
{
    _exit(22);
}

static void end_by_call(void)
{
    syscall(SYS_exit_group, 23);
}

static void *call_it(void *way)
{
    ((void (*)(void))way)();
    return NULL;
}

static void in_thread(void (*way)(void))
{
    pthread_t thread;
    pthread_create(&thread, NULL, call_it, (void *)way);
    for (;;)
        pause();
}

static void end_in_thread(void)
{
    in_thread(end_by_return);
}

static void end_at_once_in_thread(void)
{
    in_thread(end_at_once);
}

static void end_with_last_thread(void)
{
    holders_stop = 1;
    close(quiet_pipe[1]); // those that sleep wake up
    pthread_exit(NULL);
}

static void end_by_abort(void)
{
    abort();
}

static void end_by_fault(void)
{
    *(volatile int *)8 = 1;
}

static void end_by_fault_in_thread(void)
{
    in_thread(end_by_fault);
}

static void end_by_kill(void)
{
    kill(getpid(), SIGKILL);
}

static void end_by_term(void)
{
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

static void end_in_handler_of_exit(void)
{
    atexit(end_by_term);
    exit(1);
}

static void end_by_exec(void)
{
    execl("/bin/sh", "sh", "-c", "echo executed; exit 24", (char *)NULL);
    _exit(99);
}

static void end_after_failed_exec(void)
{
    execl("/dev/null/nothing", "nothing", (char *)NULL);
    _exit(errno == ENOTDIR ? 25 : 99);
}

static int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

// The child's status is the program's, so that it is compared.
static void end_like(pid_t child)
{
    int status = status_of(child);
    dprintf(1, "child %x, offset %ld\n", status, (long)lseek(3, 0, SEEK_CUR));
    _exit(26);
}

static void end_child_at_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(27);
    end_like(child);
}

static void end_child_by_exit(void)
{
    pid_t child = fork();
    if (child == 0)
        exit(28);
    end_like(child);
}

static void end_strict_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        free(malloc(10));
        prctl(PR_SET_SECCOMP, 1);
        syscall(SYS_exit, 29);
    }
    end_like(child);
}

static void end_vfork_child(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(30);
    end_like(child);
}

// Nothing of a stream's own functions may be seen when it was never flushed.
static ssize_t cookie_write(void *cookie, const char *text, size_t size)
{
    (void)cookie;
    (void)text;
    if (write(1, "cookie\n", 7) != 7)
        return -1;
    unlink("kept");
    ++*shared;
    return (ssize_t)size;
}

static ssize_t cookie_never_ends(void *cookie, const char *text, size_t size)
{
    (void)cookie;
    (void)text;
    while (size)
        free(malloc(size));
    return 0;
}

static void end_with_cookie(cookie_write_function_t *fn)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = fn});
    fprintf(stream, "never written\n");
    _exit(31);
}

static void end_with_stream_of_its_own(void)
{
    end_with_cookie(cookie_write);
}

static void end_with_endless_stream(void)
{
    end_with_cookie(cookie_never_ends);
}

static void *lock_for_ever(void *stream)
{
    flockfile(stream);
    is_locked = 1;
    while (is_locked)
        pause();
    return NULL;
}

static void end_with_locked_stream(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, lock_for_ever, kept);
    while (!is_locked)
        usleep(1000);
    _exit(32);
}

// A signal that was waiting when the client ended ends nothing.
static void end_with_blocked_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_kill(pthread_self(), SIGTERM);
    _exit(33);
}

static void __attribute__((noinline)) leak(size_t size)
{
    char *volatile block = malloc(size);
    block = NULL;
    (void)block;
}

static void end_with_leaks(void)
{
    leak(100);
    leak(200);
    _exit(34);
}

static const struct {
    const char *name;
    void (*end)(void);
} ways[] = {
    {"exit", end_by_return},
    {"_exit", end_at_once},
    {"exit_group", end_by_call},
    {"thread-exit", end_in_thread},
    {"thread-_exit", end_at_once_in_thread},
    {"last-thread", end_with_last_thread},
    {"abort", end_by_abort},
    {"fault", end_by_fault},
    {"thread-fault", end_by_fault_in_thread},
    {"kill", end_by_kill},
    {"term", end_by_term},
    {"atexit-term", end_in_handler_of_exit},
    {"exec", end_by_exec},
    {"failed-exec", end_after_failed_exec},
    {"child-_exit", end_child_at_once},
    {"child-exit", end_child_by_exit},
    {"child-strict", end_strict_child},
    {"vfork-child", end_vfork_child},
    {"cookie", end_with_stream_of_its_own},
    {"endless-cookie", end_with_endless_stream},
    {"locked-stream", end_with_locked_stream},
    {"blocked-signal", end_with_blocked_signal},
    {"leaks", end_with_leaks},
};

static void ignore(int sig)
{
    (void)sig;
}

static void prepare(void)
{
    char line[8];
    int file = open("shared", O_RDWR | O_CREAT, 0600);
    signal(SIGUSR1, ignore);
    if (file < 0 || ftruncate(file, 4096) != 0 || pipe(quiet_pipe) != 0)
        exit(99);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    kept = fopen("kept", "w");
    fprintf(kept, "unflushed\n");
    input = fdopen(3, "r"); // reads ahead: the offset is behind what was asked for
    if (!fgets(line, sizeof(line), input))
        exit(99);
}

int main(int argc, char **argv)
{
    prepare();
    for (size_t h = 0; argc > 2 && h < sizeof(holders) / sizeof(*holders); h++) {
        for (int i = 0; strcmp(holders[h].name, argv[2]) == 0 && i < HOLDERS; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, hold, (void *)holders[h].round);
        }
    }
    while (rounds < ROUNDS)
        usleep(1000);
    for (size_t w = 0; argc > 1 && w < sizeof(ways) / sizeof(*ways); w++) {
        if (strcmp(ways[w].name, argv[1]) == 0)
            ways[w].end();
    }
    return 98;
}
