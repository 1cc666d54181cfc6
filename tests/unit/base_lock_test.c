// SPDX-License-Identifier: MIT
//
// The futex lock under contention and across fork; the panic in a child that may die.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/futex_lock.h"

#include "unit.h"

enum { THREADS = 4, ROUNDS = 100000 };

static Lock lock;
static u64 guarded;

static void *add_under_the_lock(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        lock_acquire(&lock);
        // Not atomic, on purpose: a lock that lets two in loses additions.
        *(volatile u64 *)&guarded = guarded + 1;
        lock_release(&lock);
    }
    return NULL;
}

TEST(lock_lets_one_in_at_a_time)
{
    pthread_t threads[THREADS];

    guarded = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, add_under_the_lock, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(guarded == (u64)THREADS * ROUNDS);
    CHECK(!lock_is_held(&lock));
}

static unsigned repaired;

static void count_repairs(const Lock *dead)
{
    CHECK(lock_is_held(dead));
    repaired++;
}

TEST(locks_of_the_dead_are_set_free_and_no_others)
{
    static Lock mine, others;

    lock_set_owner(7);
    lock_acquire(&others);
    lock_free_those_of_dead(1234, count_repairs); // forgets it: as if another thread held it
    CHECK(repaired == 0 && lock_is_held(&others));
    lock_set_owner(8);
    lock_acquire(&lock);
    lock_acquire(&mine);
    CHECK(!lock_try(&others));
    lock_set_owner(7);
    lock_free_those_of_dead(8, count_repairs);
    CHECK(repaired == 2 && !lock_is_held(&lock) && !lock_is_held(&mine) && lock_is_held(&others));
    lock_release(&others);
    CHECK(lock_try(&lock));
    lock_release(&lock);
}

TEST(held_lock_cannot_be_tried)
{
    CHECK(lock_try(&lock));
    CHECK(!lock_try(&lock));
    lock_release(&lock);
    CHECK(lock_try(&lock));
    lock_release(&lock);
}

TEST(lock_held_at_fork_is_free_in_the_child_after_reset)
{
    lock_acquire(&lock);
    pid_t child = fork();
    if (child == 0) {
        lock_reset_after_fork(&lock);
        _exit(lock_try(&lock) ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    lock_release(&lock);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int status_of_panic(PanicHook *hook, char *output, size_t output_size)
{
    int status, ends[2];

    CHECK(pipe(ends) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        signal(SIGABRT, SIG_IGN);
        panic_hook = hook;
        ASSERT(2 + 2 == 4);
        ASSERT(guarded == 5 && "the reason");
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], output, output_size - 1);
    output[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void report_and_fail_again(const char *file, int line, const char *text)
{
    (void)file, (void)line, (void)text;
    ASSERT(!"the hook failed too");
}

TEST(panic_names_the_place_and_aborts)
{
    char output[512];
    int status = status_of_panic(NULL, output, sizeof(output));

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(output, "base_lock_test.c:") && strstr(output, "the reason"));
}

TEST(panic_inside_the_hook_still_ends_the_process)
{
    char output[512];
    int status = status_of_panic(report_and_fail_again, output, sizeof(output));

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(output, "the hook failed too"));
}
