// SPDX-License-Identifier: MIT
//
// A program whose need for memory is known: need MODE [MIB] [FILE].
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

// Allocates and touches. False: there was no memory.
static int take(size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE) {
        char *piece = malloc(PIECE);
        if (!piece)
            return 0;
        memset(piece, 1, PIECE);
    }
    return 1;
}

static unsigned count_runs(const char *path)
{
    FILE *file = fopen(path, "a+");
    if (!file)
        return 0;
    fputc('x', file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    return (unsigned)size;
}

// Three that hold their memory at the same time, for long enough to be seen.
static int in_children(size_t bytes)
{
    int status, all = 1;
    int *ready = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            int ok = take(bytes);
            __atomic_add_fetch(ready, 1, __ATOMIC_SEQ_CST);
            for (int ms = 0; ms < 60000 && __atomic_load_n(ready, __ATOMIC_SEQ_CST) < 3; ms++)
                usleep(1000);
            usleep(300000);
            _exit(ok ? 0 : 1);
        }
    }
    while (wait(&status) > 0)
        all &= status == 0;
    return all ? 0 : 1;
}

static int as_daemon(void)
{
    pid_t child = fork();

    if (child == 0) {
        setsid();
        if (fork() == 0) {
            for (;;)
                pause();
        }
        _exit(0);
    }
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}

// Deep once, and nothing is asked for down there; the heap is largest later.
static __attribute__((noinline)) int dig(size_t bytes)
{
    volatile char frame[PIECE];

    frame[0] = frame[PIECE - 1] = 1;
    return bytes > PIECE ? dig(bytes - PIECE) + frame[0] : frame[PIECE - 1];
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "heap";
    size_t bytes = (argc > 2 ? (size_t)atoi(argv[2]) : 20) << 20;

    if (strcmp(mode, "heap") == 0)
        return take(bytes) ? 0 : 1;
    if (strcmp(mode, "stack") == 0)
        return dig(4 * bytes) && take(bytes) ? 0 : 1;
    if (strcmp(mode, "status") == 0)
        return take(bytes) ? 42 : 1;
    if (strcmp(mode, "abort") == 0)
        return take(bytes) ? 0 : (abort(), 0);
    if (strcmp(mode, "flaky") == 0)
        return take(bytes + ((size_t)(count_runs(argv[3]) % 3) << 20)) ? 0 : 1;
    if (strcmp(mode, "moody") == 0)
        return (int)(count_runs(argv[3]) % 2);
    if (strcmp(mode, "children") == 0)
        return in_children(bytes);
    if (strcmp(mode, "daemon") == 0)
        return as_daemon();
    if (strcmp(mode, "hang") == 0) {
        while (!take(bytes))
            pause();
        return 0;
    }
    if (strcmp(mode, "slow") == 0) {
        sleep(1);
        return take(bytes) ? 0 : 1;
    }
    if (strcmp(mode, "stop") == 0)
        return raise(SIGTTIN);
    if (strcmp(mode, "adapt") == 0) {
        puts(take(bytes) ? "all of it" : "less of it");
        return 0;
    }
    if (strcmp(mode, "stdin") == 0) {
        size_t size = 0;
        while (getchar() != EOF)
            size++;
        printf("%zu\n", size);
        return size == bytes >> 20 ? 0 : 1;
    }
    return 2;
}
