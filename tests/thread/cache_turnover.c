// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-cache
// STRESS: tiny-cache,tiny-blocks
//
// Threads that translate more code than a small cache holds, so that it is filled again and again
// while others have just left it, beside threads that store to a page they execute. A thread that
// waits for its turn must not be waited for, and must not link what is there no more: each walk
// through the code gives its one sum.
#include "smc.h"
#include <pthread.h>

enum { WALKERS = 6, WRITERS = 2, PIECES = 1500, WALKS = 12, STORES = 3000 };

static uint8_t *walk_code[WALKERS];
static uint32_t walk_sum[WALKERS];
static volatile int walkers_left = WALKERS;

static uint32_t value_of(int walker, int piece)
{
    return (uint32_t)(walker * 7919 + piece * 31 + 1);
}

// xor eax, eax; then pieces of `add eax, value; jmp next`, in an order that jumps about; ret.
static void make_walk(int walker)
{
    enum { PIECE_BYTES = 16 };
    uint8_t *code = map_pages((PIECES + 2) * PIECE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    walk_code[walker] = code;
    memcpy(code, "\x31\xc0\x85\xc0\x0f\x84", 6); // xor eax, eax; test eax, eax; jz rel32
    uint8_t *from = code + 6;
    for (int i = 0; i <= PIECES; i++) {
        int place = i == PIECES ? PIECES : i * 701 % PIECES; // 701 and PIECES have no common factor
        uint8_t *piece = code + (place + 1) * PIECE_BYTES;
        int32_t distance = (int32_t)(piece - (from + 4));
        memcpy(from, &distance, 4);
        if (i == PIECES) {
            *piece = 0xc3;
            break;
        }
        uint32_t value = value_of(walker, i);
        walk_sum[walker] += value;
        piece[0] = 0x05; // add eax, imm32
        memcpy(piece + 1, &value, 4);
        memcpy(piece + 5, "\x39\xc0\x0f\x84", 4); // cmp eax, eax; jz rel32
        from = piece + 9;
    }
}

static void *walk(void *arg)
{
    int walker = (int)(intptr_t)arg;
    for (int i = 0; i < WALKS; i++)
        CHECK((uint32_t)call_code(walk_code[walker]) == walk_sum[walker]);
    __atomic_sub_fetch(&walkers_left, 1, __ATOMIC_SEQ_CST);
    return arg;
}

static void *store(void *arg)
{
    for (int i = 0; i < STORES && walkers_left; i++) {
        // A new page each time: one that is written too often is not guarded any more.
        uint8_t *code = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        put_return(code, i);
        CHECK(call_code(code) == i);
        put_return(code, i + 1);
        CHECK(call_code(code) == i + 1);
        munmap(code, PAGE);
    }
    return arg;
}

int main(void)
{
    pthread_t threads[WALKERS + WRITERS];
    for (int i = 0; i < WALKERS; i++)
        make_walk(i);
    for (int i = 0; i < WALKERS + WRITERS; i++)
        pthread_create(&threads[i], NULL, i < WALKERS ? walk : store, (void *)(intptr_t)i);
    for (int i = 0; i < WALKERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
    say("walked\n");
    return 0;
}
