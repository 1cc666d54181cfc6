// SPDX-License-Identifier: MIT
// BUILD: -pthread
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
//
// One thread keeps changing the first instruction of functions, between `mov eax, 1` and a jump to
// where `mov eax, 2` is, by aligned stores as Java's compilers do it; two others call them. What is
// decoded and what is copied must be the same instruction, and what is made from an old one must
// go.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int Function(void);
enum { FUNCTIONS = 64, STEP = 64, AWAY = 1 << 20, ROUNDS = 1500 };

static char *code;
static int stop;
static uint64_t one, two;

static Function *function(int number)
{
    return (Function *)(code + number * STEP);
}

static void *call_all(void *ret_bad)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < FUNCTIONS; i++) {
            int result = function(i)();
            *(int *)ret_bad += result != 1 && result != 2;
        }
    }
    return NULL;
}

static void patch_all(uint64_t first)
{
    for (int i = 0; i < FUNCTIONS; i++)
        __atomic_store_n((uint64_t *)(code + i * STEP), first, __ATOMIC_SEQ_CST);
}

static int count_others(int wanted)
{
    int others = 0;
    for (int i = 0; i < FUNCTIONS; i++)
        others += function(i)() != wanted;
    return others;
}

int main(void)
{
    static const uint8_t return_two[] = {0xb8, 2, 0, 0, 0, 0xc3};
    uint8_t bytes[8] = {0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90};
    uint8_t jump[8] = {0xe9, 0, 0, 0, 0, 0xc3, 0x90, 0x90};
    int32_t distance = AWAY;
    pthread_t threads[2];
    int bad[2] = {0};

    code = mmap(NULL, 2 * AWAY, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    memcpy(jump + 1, &distance, 4);
    memcpy(&one, bytes, 8);
    memcpy(&two, jump, 8);
    patch_all(one);
    for (int i = 0; i < FUNCTIONS; i++)
        memcpy(code + i * STEP + 5 + AWAY, return_two, sizeof(return_two));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, call_all, &bad[i]);
    for (int i = 0; i < ROUNDS; i++)
        patch_all(i % 2 ? one : two);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    patch_all(one);
    int stale = count_others(1);
    patch_all(two);
    printf("%d bad, %d stale\n", bad[0] + bad[1], stale + count_others(2));
    return 0;
}
