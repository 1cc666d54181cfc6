// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// Registrations a libc makes behind one's back work or are refused cleanly: robust lists, tid
// addresses, rseq, sched_getcpu, malloc in many threads, getrandom-based stdio.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

static void *body(void *arg)
{
    void *head = NULL;
    size_t length = 0;
    CHECK(syscall(SYS_get_robust_list, 0, &head, &length) == 0);
    long bad = head == NULL || length != 24 || sched_getcpu() < 0;
    for (int i = 0; i < 2000; i++) {
        char *p = malloc(i % 500 + 1);
        memset(p, i, i % 500 + 1);
        free(p);
    }
    return arg ? (void *)bad : NULL;
}

int main(void)
{
    pthread_t threads[4];
    long bad = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, body, &bad);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad += (long)result;
    }
    say("bad %ld\n", bad);
    SHOW(syscall(SYS_get_robust_list, 0x3fffffff, NULL, NULL));
    SHOW(syscall(SYS_set_robust_list, NULL, 5));
    say("tid %d\n", syscall(SYS_set_tid_address, &bad) == getpid());
    SHOW(syscall(SYS_rseq, 1, 2, 3, 4) == -1);
    FILE *file = tmpfile();
    fprintf(file, "%d %s\n", 42, "words");
    rewind(file);
    int number;
    char word[16];
    say("scanned %d", fscanf(file, "%d %15s", &number, word));
    say(" %d %s\n", number, word);
    return 0;
}
