// SPDX-License-Identifier: MIT
//
// What the call stack costs, printed as comments; it fails only when a cost is absurd,
// so that a loaded machine passes. Also the tree under concurrent insertion.
#include <pthread.h>
#include <time.h>

#include "engine/callstack/callstack.h"

#include "unit.h"

#define STACK_HI 0x700000100000ull

static CallStack cs;

// Of processor time: what others do on the machine does not count.
static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Volatile, as in emitted code nothing is kept in registers between blocks.
static inline void push_call(CallEntry *volatile *top, GuestAddr ret, GuestAddr sp)
{
    volatile CallEntry *next = *top + 1;

    next->ret = ret;
    next->sp = sp;
    next->context = 0;
    *top = (CallEntry *)next;
}

static inline void pop_ret(CallEntry *volatile *top, GuestAddr ret)
{
    CallEntry *entry = *top;

    if (LIKELY(*(volatile GuestAddr *)&entry->ret == ret))
        *top = entry - 1;
}

static void start(u32 depth)
{
    callstack_set_peek(NULL);
    callstack_forget_range(0, ~0ull);
    callstack_free(&cs);
    CHECK(callstack_init(&cs, STACK_HI - 0x100000, STACK_HI));
    for (u32 i = 0; i < depth; i++)
        push_call(&cs.top, 0x100 + i, STACK_HI - 64 * (i + 1));
}

static double query_cost_ns(u32 depth, u32 changed)
{
    enum { ROUNDS = 20000 };

    start(depth);
    callstack_context(&cs, 0xa, STACK_HI - 64 * depth);
    double begin = now_ns();
    for (u32 i = 0; i < ROUNDS; i++) {
        for (u32 k = 0; k < changed; k++)
            pop_ret(&cs.top, cs.top->ret);
        for (u32 k = 0; k < changed; k++) {
            u32 level = depth - changed + k;
            push_call(&cs.top, 0x100 + level + (i & 1) * 0x1000, STACK_HI - 64 * (level + 1));
        }
        callstack_context(&cs, 0xa, STACK_HI - 64 * depth);
    }
    return (now_ns() - begin) / ROUNDS;
}

TEST(call_and_return_cost_a_few_cycles)
{
    enum { ROUNDS = 5000000 };

    start(10);
    double begin = now_ns();
    for (u32 i = 0; i < ROUNDS; i++) {
        push_call(&cs.top, 0x500, STACK_HI - 1000);
        pop_ret(&cs.top, 0x500);
    }
    double cost = (now_ns() - begin) / ROUNDS;
    printf("# call and return: %.2f ns\n", cost);
    CHECK(cost < 1000);
}

TEST(query_costs_what_changed_and_not_the_depth)
{
    double unchanged = query_cost_ns(1000, 0);
    double one = query_cost_ns(1000, 1);
    double fifty = query_cost_ns(1000, 50);

    printf("# query at depth 1000: %.1f ns unchanged, %.1f ns with 1 frame changed, %.0f with 50\n",
           unchanged, one, fifty);
    CHECK(one < 10000 && fifty < 500000);
}

TEST(stack_switch_costs_little)
{
    enum { ROUNDS = 100000 };
    GuestAddr coroutine = STACK_HI + 0x100000;

    start(15);
    GuestAddr here = STACK_HI - 64 * 16;
    double begin = now_ns();
    for (u32 i = 0; i < ROUNDS; i++) {
        callstack_load_sp(&cs, here, coroutine, false);
        if (i == 0)
            push_call(&cs.top, 0x10, coroutine - 8);
        callstack_load_sp(&cs, coroutine - 64, here, false);
        coroutine = STACK_HI + 0x100000 - 64;
    }
    double cost = (now_ns() - begin) / ROUNDS / 2;
    printf("# switch of stacks, 15 and 1 entries: %.0f ns\n", cost);
    CHECK(cs.top - cs.bottom == 15);
    CHECK(cost < 100000);
}

enum { THREADS = 4, CONTEXTS = 30000 };
static u32 ids[THREADS][CONTEXTS];

static void *make_contexts(void *argument)
{
    u32 *mine = argument;
    static __thread CallStack own;

    callstack_init(&own, STACK_HI - 0x100000, STACK_HI);
    for (u32 i = 0; i < CONTEXTS; i++) {
        own.top = own.bottom;
        push_call(&own.top, 0x77000000 + i / 100, STACK_HI - 64);
        push_call(&own.top, 0x77100000 + i / 10, STACK_HI - 128);
        mine[i] = callstack_context(&own, 0x77200000 + i, STACK_HI - 128);
    }
    callstack_free(&own);
    return NULL;
}

TEST(threads_that_make_the_same_contexts_get_the_same_ids)
{
    pthread_t threads[THREADS];

    u32 before = context_count();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, make_contexts, ids[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        CHECK(memcmp(ids[0], ids[i], sizeof(ids[0])) == 0);
    CHECK(context_count() - before == CONTEXTS + CONTEXTS / 10 + CONTEXTS / 100);
    for (u32 i = 0; i < CONTEXTS; i++)
        CHECK(context_pc(ids[0][i]) == 0x77200000 + i);
}
