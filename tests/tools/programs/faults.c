// SPDX-License-Identifier: MIT
//
// Three threads run step(), which knows how often it has begun and ended; each tenth time it faults
// in the middle and is left by longjmp out of the handler. Meanwhile a timer and the threads send
// signals, whose handlers run step() too. With "fork", children do the same.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Sums {
    unsigned long begun, also_begun, ended;
} Sums;

void step(Sums *sums, long *from);
__asm__(".globl step, step_end\n"
        "step:\n"
        "  incq (%rdi)\n"
        "  incq 8(%rdi)\n"
        "  movq (%rsi), %rax\n"
        "  incq 16(%rdi)\n"
        "  ret\n"
        "step_end:\n");

enum { THREADS = 3, ROUNDS = 20000 };
static Sums main_sums[THREADS], handler_sums[THREADS];
static __thread Sums *mine;
static __thread sigjmp_buf back;
static pthread_t threads[THREADS];

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

static void on_signal(int signal)
{
    long word = 1;
    (void)signal;
    if (mine)
        step(mine, &word);
}

static void *work(void *arg)
{
    long number = (long)arg, word = 1;
    mine = &handler_sums[number];
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 10 == 0 && sigsetjmp(back, 1) == 0)
            step(&main_sums[number], NULL);
        else
            step(&main_sums[number], &word);
        if (i % 500 == 0)
            kill(getpid(), SIGUSR1); // whichever thread it hits
    }
    return NULL;
}

static void run(void)
{
    struct itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void tell(void)
{
    Sums all = {0};
    for (int i = 0; i < THREADS; i++) {
        all.begun += main_sums[i].begun + handler_sums[i].begun;
        all.also_begun += main_sums[i].also_begun + handler_sums[i].also_begun;
        all.ended += main_sums[i].ended + handler_sums[i].ended;
    }
    printf("%d %lu %lu %lu\n", getpid(), all.begun, all.also_begun, all.ended);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &act, NULL);
    sigaction(SIGUSR1, &act, NULL);
    act.sa_handler = on_fault;
    sigaction(SIGSEGV, &act, NULL);
    run();
    for (int i = 0; i < 3 && argc > 1 && strcmp(argv[1], "fork") == 0; i++) {
        if (fork() == 0) {
            memset(main_sums, 0, sizeof(main_sums));
            memset(handler_sums, 0, sizeof(handler_sums));
            run();
            tell();
            return 0;
        }
        wait(NULL);
    }
    tell();
    return 0;
}
