// SPDX-License-Identifier: MIT
//
// Every place from which a block can be held, each with a block of a size of its own. Sizes below
// 1000 are held, sizes from 1000 on are not: their last pointer is where nobody looks.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, KEYS = 40, THREADS = 5 };

static void *data_word = &data_word, *bss_word;
static __thread void *tls_word;
static __thread void *tls_array[2000];
static pthread_barrier_t barrier;

static void *mapping(int flags, int fd)
{
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
}

__attribute__((noinline)) static void fill_mappings(void)
{
    int fd = memfd_create("roots", 0);
    ftruncate(fd, PAGE);
    ((void **)mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1))[3] = malloc(101);
    ((void **)mapping(MAP_SHARED | MAP_ANONYMOUS, -1))[3] = malloc(102);
    ((void **)mapping(MAP_SHARED, fd))[3] = malloc(103);
    ((void **)mapping(MAP_PRIVATE, fd))[5] = malloc(104);
    ((void **)sbrk(PAGE))[3] = malloc(105);
    void **closed = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    closed[3] = malloc(106);
    int key = pkey_alloc(0, 0); // fails where there are none, and under the incumbent
    if (key > 0 && pkey_mprotect(closed, PAGE, PROT_READ | PROT_WRITE, key) == 0)
        pkey_set(key, PKEY_DISABLE_ACCESS);
    void **gone = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    gone[3] = malloc(1001);
    munmap(gone, PAGE);
    void **shut = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    shut[3] = malloc(1002);
    mprotect(shut, PAGE, PROT_READ); // only what can be written is looked at
    void **odd = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    void *block = malloc(1003);
    memcpy((char *)odd + 4, &block, sizeof(block)); // not where a pointer can be
    void **half = mapping(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    half[0] = malloc(1004);
    *(uint32_t *)half = 0;
}

// The next three hold a pointer in a register and nowhere else, in a loop or in the kernel.
#define MEET(held, size)                                                                           \
    void *held = malloc(size);                                                                     \
    pthread_barrier_wait(&barrier)

static void *spin_caller_saved(void *unused)
{
    (void)unused;
    MEET(held, 201);
    __asm__ volatile("mov %0, %%r10\n"
                     "xor %%eax, %%eax\n"
                     "mov %%rax, %0\n"
                     "1: pause\n"
                     "jmp 1b\n"
                     : "+m"(held)
                     :
                     : "r10", "rax");
    return NULL;
}

static void *spin_callee_saved(void *unused)
{
    (void)unused;
    MEET(held, 202);
    __asm__ volatile("mov %0, %%r13\n"
                     "xor %%eax, %%eax\n"
                     "mov %%rax, %0\n"
                     "1: pause\n"
                     "jmp 1b\n"
                     : "+m"(held)
                     :
                     : "r13", "rax");
    return NULL;
}

static void *sleep_in_kernel(void *unused)
{
    (void)unused;
    MEET(held, 203);
    __asm__ volatile("mov %0, %%rbx\n"
                     "xor %%eax, %%eax\n"
                     "mov %%rax, %0\n"
                     "1: mov $34, %%eax\n" // pause
                     "syscall\n"
                     "jmp 1b\n"
                     : "+m"(held)
                     :
                     : "rbx", "rax", "rcx", "r11");
    return NULL;
}

static void *sleep_with_variables(void *key)
{
    void *volatile on_stack = malloc(204);
    tls_word = malloc(205);
    tls_array[1999] = malloc(206);
    pthread_setspecific(((pthread_key_t *)key)[0], malloc(207));
    pthread_setspecific(((pthread_key_t *)key)[KEYS - 1], malloc(208));
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return on_stack;
}

static ucontext_t back, aside;

static void run_aside(void)
{
    void *volatile held = malloc(301);
    swapcontext(&aside, &back);
    free(held);
}

static void on_signal(int number)
{
    void *volatile held = malloc(302);
    (void)number;
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    free(held);
}

static void *sleep_in_handler(void *unused)
{
    stack_t stack = { .ss_sp = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                      .ss_size = 16 * PAGE };
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return unused;
}

__attribute__((noinline)) static void fill_variables(void)
{
    data_word = malloc(401);
    bss_word = malloc(402);
    tls_word = malloc(403);
    getcontext(&aside);
    aside.uc_stack.ss_sp = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    aside.uc_stack.ss_size = 16 * PAGE;
    makecontext(&aside, run_aside, 0);
    swapcontext(&back, &aside);
}

__attribute__((noinline)) static void leave_below(void)
{
    void *volatile below[64];
    below[0] = malloc(1005); // below the stack pointer when all is done
}

__attribute__((noinline)) static void clear_stack(void)
{
    volatile char used[16384];
    memset((char *)used, 0, sizeof(used));
}

int main(void)
{
    void *(*const work[THREADS])(void *) = { spin_caller_saved, spin_callee_saved, sleep_in_kernel,
                                             sleep_with_variables, sleep_in_handler };
    pthread_key_t keys[KEYS];
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < KEYS; i++)
        pthread_key_create(&keys[i], NULL);
    fill_variables(); // before the others: a context is saved with whatever is in registers
    fill_mappings();
    clear_stack();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, work[i], keys);
    pthread_barrier_wait(&barrier);
    usleep(100000); // for the threads to be where they stay; what they hold is held before, too
    leave_below();
    _Exit(0);
}
