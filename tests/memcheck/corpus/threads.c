// SPDX-License-Identifier: MIT
//
// The same errors, made by a second thread, and the ways in which threads share memory that are
// right.
// BUILD -pthread
#include "corpus.h"

#include <pthread.h>
#include <semaphore.h>

static NOINLINE void *in_thread(void *(*work)(void *), void *arg)
{
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_create(&thread, NULL, work, arg) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

// A worker stands below the case it belongs to, so that its expectations do too.
#define WORKER(name) static NOINLINE void *name(void *arg)

WORKER(read_behind);
CASE(read_behind_other_thread)
{
    u8 *p = block(12);
    in_thread(read_behind, p);
    free(p);
}
WORKER(read_behind)
{
    READ4((u8 *)arg + 12); // EXPECT memcheck invalid-read size=4 block=after:0 of=12 alloc=-6
    return NULL;
}

WORKER(write_behind);
CASE(write_behind_other_thread)
{
    u8 *p = block(12);
    in_thread(write_behind, p);
    free(p);
}
WORKER(write_behind)
{
    WRITE8((u8 *)arg + 8); // EXPECT memcheck invalid-write size=8 block=inside:8 of=12 alloc=-6
    return NULL;
}

WORKER(write_zero);
CASE(write_inside_other_thread)
{
    u32 *p = (u32 *)block(12);
    in_thread(write_zero, p);
    BRANCH(p[2]);
    free(p);
}
WORKER(write_zero)
{
    memset(arg, 0, 12);
    return NULL;
}

WORKER(free_it);
CASE(freed_by_other_thread)
{
    u8 *p = block(12);
    in_thread(free_it, p);
    HIDE(p);
    WRITE4(p); // EXPECT memcheck invalid-write size=4 block=inside:0 of=12 state=freed free=5
}
WORKER(free_it)
{
    HIDE(arg);
    free(arg);
    return NULL;
}

WORKER(free_again);
CASE(freed_twice_by_two_threads)
{
    u8 *p = block(12);
    free(p);
    HIDE(p);
    in_thread(free_again, p);
}
WORKER(free_again)
{
    HIDE(arg);
    free(arg); // EXPECT memcheck invalid-free block=inside:0 of=12 state=freed free=-7
    return NULL;
}

WORKER(branch_on);
CASE(undefined_made_here_used_there)
{
    u32 *p = (u32 *)block(12);
    in_thread(branch_on, p);
    free(p);
}
WORKER(branch_on)
{
    BRANCH(*(u32 *)arg); // EXPECT memcheck uninit-branch origin=heap:-6
    return NULL;
}

WORKER(give_undefined);
CASE(undefined_made_there_used_here)
{
    u32 *p = (u32 *)in_thread(give_undefined, NULL);
    BRANCH(p[1]); // EXPECT memcheck uninit-branch origin=heap:5
    free(p);
}
WORKER(give_undefined)
{
    return block(8);
}

WORKER(give_zero);
CASE(defined_made_there_used_here)
{
    u32 *p = (u32 *)in_thread(give_zero, NULL);
    BRANCH(p[1]);
    free(p);
}
WORKER(give_zero)
{
    return calloc(1, 8);
}

WORKER(use_stack_undefined);
CASE(undefined_on_thread_stack)
{
    in_thread(use_stack_undefined, NULL);
}
WORKER(use_stack_undefined)
{
    volatile int local[4];
    BRANCH(local[2]); // EXPECT memcheck uninit-branch origin=stack
    return NULL;
}

WORKER(use_stack_defined);
CASE(defined_on_thread_stack)
{
    in_thread(use_stack_defined, NULL);
}
WORKER(use_stack_defined)
{
    volatile int local[400];
    for (int i = 0; i < 400; i++)
        local[i] = i;
    BRANCH(local[200]);
    return NULL;
}

WORKER(write_other_stack);
CASE(stack_shared_with_thread)
{
    int local[4] = {0, 0, 0, 0};
    in_thread(write_other_stack, local);
    CHECK(local[3] == 3);
}
WORKER(write_other_stack)
{
    for (int i = 0; i < 4; i++)
        ((int *)arg)[i] = i;
    return NULL;
}

WORKER(count_up);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;
CASE(two_threads_and_a_mutex)
{
    pthread_t a, b;
    pthread_create(&a, NULL, count_up, NULL);
    pthread_create(&b, NULL, count_up, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK(counter == 2000);
}
WORKER(count_up)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

WORKER(produce);
static int pipe_of_blocks[2];
CASE(blocks_through_a_pipe)
{
    pthread_t a;
    CHECK(pipe(pipe_of_blocks) == 0);
    pthread_create(&a, NULL, produce, NULL);
    for (int i = 0; i < 200; i++) {
        int *p;
        CHECK(read(pipe_of_blocks[0], &p, sizeof p) == sizeof p);
        CHECK(*p == i);
        free(p);
    }
    pthread_join(a, NULL);
}
WORKER(produce)
{
    for (int i = 0; i < 200; i++) {
        int *p = (int *)malloc(sizeof *p);
        *p = i;
        CHECK(write(pipe_of_blocks[1], &p, sizeof p) == sizeof p);
    }
    return NULL;
}

WORKER(wait_and_post);
static sem_t ping, pong;
CASE(semaphores)
{
    pthread_t a;
    sem_init(&ping, 0, 0);
    sem_init(&pong, 0, 0);
    pthread_create(&a, NULL, wait_and_post, NULL);
    for (int i = 0; i < 50; i++) {
        sem_post(&ping);
        sem_wait(&pong);
    }
    pthread_join(a, NULL);
}
WORKER(wait_and_post)
{
    for (int i = 0; i < 50; i++) {
        sem_wait(&ping);
        sem_post(&pong);
    }
    return NULL;
}

WORKER(use_own_tls);
static __thread int own[16];
CASE(thread_local_is_zero)
{
    own[3] = 7;
    in_thread(use_own_tls, NULL);
}
WORKER(use_own_tls)
{
    for (int i = 0; i < 16; i++)
        BRANCH(own[i]);
    CHECK(own[3] == 0);
    return NULL;
}

WORKER(free_many);
CASE(freed_by_the_other_in_bulk)
{
    static void *p[500];
    for (int i = 0; i < 500; i++)
        p[i] = malloc(i + 1);
    in_thread(free_many, p);
    for (int i = 0; i < 500; i++)
        free(malloc(i + 1));
}
WORKER(free_many)
{
    for (int i = 0; i < 500; i++)
        free(((void **)arg)[i]);
    return NULL;
}

WORKER(clear_for_join);
CASE(threads_come_and_go)
{
    for (int i = 0; i < 20; i++) {
        u8 *p = block(64);
        in_thread(clear_for_join, p);
        BRANCH(p[63]);
        free(p);
    }
}
WORKER(clear_for_join)
{
    memset(arg, 0, 64);
    return NULL;
}

WORKER(exit_thread);
CASE(pthread_exit_and_keys)
{
    pthread_key_t key;
    CHECK(pthread_key_create(&key, free) == 0);
    CHECK(in_thread(exit_thread, &key) == (void *)5);
}
WORKER(exit_thread)
{
    pthread_setspecific(*(pthread_key_t *)arg, malloc(10));
    pthread_exit((void *)5);
}
