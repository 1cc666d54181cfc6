// SPDX-License-Identifier: MIT
// BUILD: -O1
// CPU: ospke
// STRESS: signals
// STRESS: tiny-blocks
// MUNINN: --tool=none
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --massif-out-file=/dev/null
//
// Memory with protection keys: code that may not be written or not even be read by data accesses
// while it runs, among signals; data that is closed, in the program, in handlers, in system calls
// and in another thread. The kernel opens key 0 alone for a handler.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf away;
static volatile int faults, code, key_told, ticks;
static int data_key;
static volatile int *closed;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    faults++;
    code = info->si_code;
    key_told = info->si_pkey;
    printf("handler of %d: key is %d\n", sig, pkey_get(data_key));
    siglongjmp(away, 1);
}

static void on_tick(int sig)
{
    (void)sig;
    ticks++;
}

static volatile int key_in_handler;

static void on_user(int sig)
{
    (void)sig;
    key_in_handler = pkey_get(data_key);
}

static void try_to_read(const char *what)
{
    faults = code = key_told = 0;
    if (sigsetjmp(away, 1) == 0) {
        int value = *closed;
        printf("%s: read %d\n", what, value);
    } else {
        printf("%s: %d fault, code %d, our key %d, key now %d\n", what, faults, code,
               key_told == data_key, pkey_get(data_key));
    }
}

static void *in_thread(void *unused)
{
    (void)unused;
    printf("thread: key %d\n", pkey_get(data_key));
    pkey_set(data_key, 0);
    printf("thread: reads %d\n", *closed);
    return NULL;
}

// The sum of the numbers up to edi: xor eax, eax ; 1: add eax, edi ; dec edi ; jnz 1b ; ret
static const uint8_t machine_code[] = {0x31, 0xc0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0xc3};

static void run_code(uint8_t *page, int key, unsigned rights)
{
    unsigned wrong = 0;
    struct itimerval every = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};

    ticks = 0;
    for (int round = 0; round < 40 || ticks < 10; round++) {
        pkey_set(key, 0);
        memcpy(page, machine_code, sizeof(machine_code));
            if (pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, key))
            perror("pkey_mprotect");
        pkey_set(key, rights);
        setitimer(ITIMER_REAL, &every, NULL);
        for (int i = 1; i <= 200; i++) {
            unsigned n = 100 + (unsigned)i;
            wrong += ((unsigned (*)(unsigned))(uintptr_t)page)(n) != n * (n + 1) / 2;
        }
        setitimer(ITIMER_REAL, &none, NULL);
        wrong += pkey_get(key) != (int)rights;
    }
    printf("code under rights %u: %u wrong\n", rights, wrong);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    int pipes[2];

    setvbuf(stdout, NULL, _IONBF, 0);

    data_key = pkey_alloc(0, 0);
    int code_key = pkey_alloc(0, 0);
    if (data_key < 0 || code_key < 0) {
        printf("no keys: %s\n", strerror(errno));
        return 0;
    }
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGALRM, on_tick);
    signal(SIGUSR1, on_user);

    closed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *closed = 42;
    pkey_mprotect((void *)closed, 4096, PROT_READ | PROT_WRITE, data_key);
    try_to_read("open");
    pkey_set(data_key, PKEY_DISABLE_ACCESS);
    try_to_read("closed");
    try_to_read("after a jump out of the handler");
    pkey_set(data_key, PKEY_DISABLE_WRITE);
    try_to_read("read-only");

    raise(SIGUSR1);
    printf("in a handler %d, behind it %d\n", key_in_handler, pkey_get(data_key));
    pkey_set(data_key, 0);
    raise(SIGUSR1);
    printf("in a handler %d, behind it %d\n", key_in_handler, pkey_get(data_key));

    if (pipe(pipes))
        return 1;
    pkey_set(data_key, PKEY_DISABLE_ACCESS);
    errno = 0;
    ssize_t written = write(pipes[1], (void *)closed, 4);
    printf("write from closed memory: %zd %s\n", written, strerror(errno));
    pkey_set(data_key, 0);
    written = write(pipes[1], (void *)closed, 4);
    pkey_set(data_key, PKEY_DISABLE_WRITE);
    errno = 0;
    ssize_t got = read(pipes[0], (void *)closed, 4);
    printf("read into read-only memory: %zd of %zd %s\n", got, written, strerror(errno));

    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    printf("key behind the thread: %d\n", pkey_get(data_key));

    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run_code(page, code_key, 0);
    run_code(page, code_key, PKEY_DISABLE_WRITE);
    run_code(page, code_key, PKEY_DISABLE_ACCESS);
    return 0;
}
