// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
// STRESS: tiny-blocks
//
// A mapping made with MAP_GROWSDOWN grows when memory below it is touched: by a store, by a load, by
// a system call, and as the stack of a thread; and not beyond what the kernel allows.
#include "guest.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
#define TOP ((char *)0x64000000000)

static sigjmp_buf back;

static void on_fault(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

static char *grows_at(char *top)
{
    char *p = mmap(top - PAGE, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(p == top - PAGE);
    return top;
}

static bool can_store(volatile char *at)
{
    if (sigsetjmp(back, 1))
        return false;
    *at = 7;
    return *at == 7;
}

__attribute__((noinline)) static int descend(int depth)
{
    volatile char frame[3000];
    frame[0] = (char)depth;
    frame[2999] = 1;
    return depth == 0 ? 0 : descend(depth - 1) + frame[2999];
}

static void *run(void *argument)
{
    *(int *)argument = descend(300); // 900 KB of it, and one page was there
    return NULL;
}

static void run_thread(void)
{
    int depth = 0;
    char *top = grows_at(TOP - (64 << 20));
    CHECK(mprotect(top - PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    memset(top - 20 * PAGE, 0, 20 * PAGE); // what pthread_create() itself needs
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, top - 20 * PAGE, 20 * PAGE);
    CHECK(pthread_create(&thread, &attributes, run, &depth) == 0);
    pthread_join(thread, NULL);
    say("thread %d\n", depth);
}

int main(int argc, char **argv)
{
    (void)argv;
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    char *top = grows_at(TOP);
    int stored = 0, zeros = 0;
    for (int i = 2; i <= 100; i++)
        stored += can_store(top - i * PAGE + 5);
    for (int i = 101; i <= 120; i++)
        zeros += top[-i * PAGE] == 0;
    say("stored %d, read %d\n", stored, zeros);
    say("far below %d\n", can_store(top - 1000 * PAGE));
    int pipes[2];
    CHECK(pipe(pipes) == 0 && write(pipes[1], "hello", 6) == 6);
    say("read %zd", read(pipes[0], top - 1200 * PAGE, 6));
    say(" of %s\n", top - 1200 * PAGE);
    if (argc > 1) // memcheck reports them
        say("beyond the limit %d, behind the end %d\n", can_store(top - (1 << 30)),
            can_store(top));
    char *last = top - 1300 * PAGE;
    __asm__ volatile("std; rep stosb; cld" : "+D"(last) : "a"(9), "c"(3 * PAGE) : "memory");
    say("downwards %d %d\n", top[-1300 * PAGE] == 9, top[-1302 * PAGE] == 9);
    run_thread();
    if (argc > 1)
        say("unmap %d, then %d\n", munmap(top - 1400 * PAGE, 1400 * PAGE), can_store(top - PAGE));
    return 0;
}
