// SPDX-License-Identifier: MIT
//
// A program that does what its arguments say, one word after the other, and makes findings by
// calling muninn_test_finding(), which --tool=findingtest replaces. Returns the status of `exit`,
// or 0 at the end of its arguments. A child takes the words up to the matching `end`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muninn/client.h"

extern char **environ;
enum { INVALID_READ = 2 }; // the place of the kind in wire/findings.def

typedef unsigned long Word;

// Natively, and when nobody replaces it, no finding is made.
__attribute__((noinline, noclone)) int muninn_test_finding(Word kind, Word v0, Word v1, Word v2,
                                                           const char *text, Word part)
{
    __asm__ volatile("" : : "r"(kind), "r"(v0), "r"(v1), "r"(v2), "r"(text), "r"(part));
    return -1;
}

__attribute__((noinline, noclone)) int muninn_test_finding_fast(Word kind, Word v0, Word v1,
                                                                Word v2, const char *text,
                                                                Word part)
{
    __asm__ volatile("" : : "r"(kind), "r"(v0), "r"(v1), "r"(v2), "r"(text), "r"(part));
    return -1;
}

static int find(Word number)
{
    return muninn_test_finding(INVALID_READ, number, 0, 0, NULL, 0);
}

static void say(int fd, const char *text)
{
    char line[4096];
    int n = snprintf(line, sizeof(line), "%s\n", text);
    if (write(fd, line, (size_t)n) != n)
        _exit(99);
}

// Until standard input ends.
static void await(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

// ------------------------------------------------------------------------- stacks

// Eight ways to the same finding: frames 5 to 7 differ, or 3 and 4, by the bits of `way`.
#define WAY(name, next)                                              \
    __attribute__((noinline, noclone)) static int name(unsigned way) \
    {                                                                \
        int r = (way & 1) ? next(way >> 1) : next(way >> 1) + 0;     \
        __asm__ volatile("");                                        \
        return r;                                                    \
    }

__attribute__((noinline, noclone)) static int innermost(unsigned way)
{
    (void)way;
    int r = muninn_test_finding(INVALID_READ, 8, 0, 0, NULL, 0);
    __asm__ volatile("");
    return r;
}
WAY(near_2, innermost)
WAY(near_1, near_2)
WAY(far_3, near_1)
WAY(far_2, far_3)
WAY(far_1, far_2)

// frame 0 muninn_test_finding, 1 innermost, 2 near_2, 3 near_1, 4 far_3, 5 far_2, 6 far_1
static void ways(const char *which)
{
    for (unsigned i = 0; i < 4; i++)
        far_1(strcmp(which, "near") == 0 ? i << 3 : i);
}

__attribute__((noinline, noclone)) static int deep(int depth)
{
    int r = depth > 0 ? deep(depth - 1) : find(77);
    __asm__ volatile("");
    return r;
}

// ------------------------------------------------------------------------ threads

static pthread_barrier_t barrier;
static long findings_each;

static void *thread_main(void *arg)
{
    long number = (long)arg;
    char name[16];
    snprintf(name, sizeof(name), "worker-%ld", number);
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < findings_each; i++) {
        for (volatile int twice = 0; twice < 2; twice++) // one call site
            find((Word)(number * 1000 + i));
        find(1000000); // all threads' own
    }
    return NULL;
}

static void threads(long count, long each)
{
    pthread_t ids[256];
    findings_each = each;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (long i = 0; i < count; i++) {
        if (pthread_create(&ids[i], NULL, thread_main, (void *)(i + 1)) != 0)
            abort();
    }
    for (long i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
}

// ------------------------------------------------------------------- ways to end

__attribute__((noinline)) static int use_stack(int depth)
{
    volatile char frame[2000];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : use_stack(depth + 1) + frame[0];
}

static void *use_stack_of_thread(void *unused)
{
    (void)unused;
    return use_stack(0) ? &barrier : NULL;
}

static void die(const char *how)
{
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "segv") == 0)
        *(volatile int *)8 = 0;
    if (strcmp(how, "overflow") == 0)
        exit(use_stack(0));
    if (strcmp(how, "overflow-thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, use_stack_of_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "fpe") == 0)
        raise(SIGFPE);
    if (strcmp(how, "term") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    // As an allocation beyond the limit of a memory group ends: killed in the middle of it.
    if (strcmp(how, "oom") == 0)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGKILL);
    if (strcmp(how, "_exit") == 0)
        _exit(9);
    abort();
}

// ------------------------------------------------------------------------- worlds

static void check(int result, const char *what)
{
    if (result != 0) {
        perror(what);
        _exit(98);
    }
}

static void set_limit(int which, rlim_t value)
{
    struct rlimit limit = {value, value};
    check(setrlimit(which, &limit), "setrlimit");
}

static void daemonise(void)
{
    if (fork() != 0)
        _exit(0);
    setsid();
    if (fork() != 0)
        _exit(0);
    close(0);
    close(1);
    close(2);
}

static void strict_seccomp(void)
{
    // Allowed: read, write, exit, rt_sigreturn. Everything else kills.
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "seccomp");
}

// All descriptors that this process may have.
static void open_everything(void)
{
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

static void close_everything(void)
{
    for (int fd = 0; fd < 4096; fd++)
        close(fd);
}

// --------------------------------------------------------------------- the words

static char **perform(char **word);

// The words of a child; returns the word behind `end`.
static char **past_end(char **word)
{
    for (int depth = 1; depth > 0; word++) {
        if (strncmp(*word, "fork", 4) == 0)
            depth++;
        else if (strcmp(*word, "end") == 0)
            depth--;
    }
    return word;
}

static char **do_fork(char **word, int wait_for_it)
{
    pid_t pid = fork();
    if (pid == 0) {
        while (*word && strcmp(*word, "end") != 0)
            word = perform(word);
        _exit(0);
    }
    if (wait_for_it)
        waitpid(pid, NULL, 0);
    return past_end(word);
}

static void storm(long count)
{
    for (long i = 0; i < count; i++) {
        if (fork() == 0) {
            find((Word)i);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void spawn_and_wait(const char *how, char *path)
{
    char *argv[] = {path, NULL};
    pid_t pid = 0;
    int status;
    if (strcmp(how, "spawn") == 0) {
        check(posix_spawn(&pid, path, NULL, NULL, argv, environ), "posix_spawn");
    } else {
        pid = vfork();
        if (pid == 0) {
            execv(path, argv);
            _exit(97);
        }
    }
    waitpid(pid, &status, 0);
}

// Makes findings and tells of each, on descriptor 1, that it was answered.
static void loop(long count)
{
    for (long i = 0; i < count; i++) {
        char line[32];
        find((Word)i);
        int n = snprintf(line, sizeof(line), "%ld\n", i);
        if (write(1, line, (size_t)n) != n)
            _exit(96);
    }
}

static void print_number(long number)
{
    printf("%ld\n", number);
    fflush(stdout);
}

// K V0 V1 V2 TEXT PART
typedef int MakeFn(Word, Word, Word, Word, const char *, Word);
static void make(MakeFn *fn, char **a)
{
    fn((Word)atol(a[0]), (Word)atol(a[1]), (Word)atol(a[2]), (Word)atol(a[3]),
       a[4][0] ? a[4] : NULL, (Word)atol(a[5]));
}

typedef struct Verb {
    const char *name;
    int argc;
    void (*fn)(char **a);
} Verb;

#define VERB(name, argc, ...)         \
    static void do_##name(char **a)   \
    {                                 \
        (void)a;                      \
        __VA_ARGS__;                  \
    }
#include "verbs.def"

static const Verb verbs[] = {
#define VERB(name, argc, ...) {#name, argc, do_##name},
#include "verbs.def"
};

static char **perform(char **word)
{
    if (strcmp(*word, "fork") == 0 || strcmp(*word, "forknowait") == 0)
        return do_fork(word + 1, strcmp(*word, "fork") == 0);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(*word, verbs[i].name) == 0) {
            verbs[i].fn(word + 1);
            return word + 1 + verbs[i].argc;
        }
    }
    fprintf(stderr, "actor: what is %s?\n", *word);
    exit(95);
}

int main(int argc, char **argv)
{
    (void)argc;
    for (char **word = argv + 1; *word;)
        word = perform(word);
    return 0;
}
