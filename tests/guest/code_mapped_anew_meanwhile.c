// SPDX-License-Identifier: MIT
// BUILD: -pthread
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// Threads run a function of many calls while its pages are replaced by the same ones again and
// again: they return into code that is being made.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void Function(volatile long *count, long turns);
enum { PAGE = 4096, CALLS = 60, TIMES = 4000, THREADS = 3 };

static int stop;
static Function *outer;

// The one that is called lies a page before, and stays.
__asm__(".text\n"
        "inner: testq %rsi, %rsi\n\tjle 2f\n"
        "1:\taddq $1, (%rdi)\n\tsubq $1, %rsi\n\tjne 1b\n2:\tret\n"
        "inner_end:\n");
extern const char inner[], inner_end[];

static void put_call(uint8_t **at, const uint8_t *to)
{
    static const uint8_t more[] = {0x48, 0x89, 0xde,       // mov rsi, rbx
                                   0x48, 0x8d, 0x44, 0x12, 3,  // lea rax, [rdx + rdx + 3]
                                   0x48, 0x31, 0xc2,       // xor rdx, rax
                                   0x48, 0x0f, 0xaf, 0xc2, // imul rax, rdx
                                   0x48, 0x01, 0xc1};      // add rcx, rax
    for (int i = 0; i < 6; i++, *at += sizeof(more))
        memcpy(*at, more, sizeof(more));
    int32_t distance = (int32_t)(to - (*at + 5));
    *(*at)++ = 0xe8;
    memcpy(*at, &distance, 4);
    *at += 4;
}

static void *call_outer(void *turns)
{
    volatile long count = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        outer(&count, (long)(intptr_t)turns);
    return NULL;
}

int main(void)
{
    static const uint8_t begin[] = {0x53, 0x48, 0x89, 0xf3}; // push rbx ; mov rbx, rsi
    static const uint8_t end[] = {0x5b, 0xc3};
    static uint8_t pages[4 * PAGE];
    uint8_t *at = pages + PAGE;
    pthread_t threads[THREADS];

    memcpy(pages, inner, (size_t)(inner_end - inner));
    memcpy(at, begin, sizeof(begin));
    at += sizeof(begin);
    for (int i = 0; i < CALLS; i++)
        put_call(&at, pages);
    memcpy(at, end, sizeof(end));
    int fd = memfd_create("code", 0);
    if (write(fd, pages, sizeof(pages)) != sizeof(pages))
        abort();
    char *code = mmap(NULL, sizeof(pages), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_32BIT, fd, 0);
    outer = (Function *)(code + PAGE);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_outer, (void *)(intptr_t)(50 + 37 * i));
    for (int i = 0; i < TIMES; i++) {
        if (mmap(code + PAGE, sizeof(pages) - PAGE, PROT_READ | PROT_EXEC,
                 MAP_PRIVATE | MAP_FIXED, fd, PAGE) == MAP_FAILED)
            abort();
        usleep(100);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("all came back");
    return 0;
}
