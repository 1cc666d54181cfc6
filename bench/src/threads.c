// SPDX-License-Identifier: MIT
//
// Independent work on N threads, to show whether the engine lets threads run in parallel. Each
// thread interprets its own little byte code (indirect jumps), sorts through a comparison callback
// (indirect calls and returns) and allocates, and shares nothing with the others.
//
// usage: threads COUNT ROUNDS
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, PROGRAM_SIZE = 256, SORT_SIZE = 512 };

typedef struct {
    pthread_t handle;
    int rounds;
    uint64_t seed;
    uint64_t sum;
} Worker;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t interpret(const uint8_t *program, uint64_t value)
{
    for (int pc = 0; pc < PROGRAM_SIZE; pc++) {
        switch (program[pc] & 7) {
        case 0: value += 0x1234567; break;
        case 1: value ^= value >> 9; break;
        case 2: value *= 0x100000001b3u; break;
        case 3: value = (value << 13) | (value >> 51); break;
        case 4: value -= program[pc]; break;
        case 5: value ^= (uint64_t)program[(value >> 3) % PROGRAM_SIZE] << 32; break;
        case 6: value = ~value; break;
        default: pc += (int)(value & 3); break;
        }
    }
    return value;
}

static int compare_words(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static uint64_t sort_some(uint64_t *seed)
{
    uint32_t *words = malloc(SORT_SIZE * sizeof(*words));
    if (!words)
        abort();
    for (int i = 0; i < SORT_SIZE; i++)
        words[i] = (uint32_t)next_random(seed);
    qsort(words, SORT_SIZE, sizeof(*words), compare_words);
    uint64_t sum = words[0] + 3 * (uint64_t)words[SORT_SIZE / 2] + words[SORT_SIZE - 1];
    free(words);
    return sum;
}

static void *work(void *argument)
{
    Worker *worker = argument;
    uint64_t seed = worker->seed, sum = 0;
    uint8_t program[PROGRAM_SIZE];
    for (int i = 0; i < PROGRAM_SIZE; i++)
        program[i] = (uint8_t)next_random(&seed);
    for (int round = 0; round < worker->rounds; round++) {
        for (int i = 0; i < 20; i++)
            sum = interpret(program, sum + (uint64_t)i);
        sum += sort_some(&seed);
    }
    worker->sum = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 1000;
    if (count < 1 || count > THREADS_MAX) {
        fprintf(stderr, "threads: COUNT must be 1 to %d\n", THREADS_MAX);
        return 2;
    }
    static Worker workers[THREADS_MAX];
    for (int i = 0; i < count; i++) {
        workers[i] = (Worker){ .rounds = rounds, .seed = 0x9e3779b97f4a7c15u + (uint64_t)i };
        if (pthread_create(&workers[i].handle, NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "threads: cannot create a thread\n");
            return 1;
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].handle, NULL);
        printf("%d %016llx\n", i, (unsigned long long)workers[i].sum);
    }
    return 0;
}
