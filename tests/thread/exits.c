// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread -Wno-array-bounds
// RUN[main-leaves-first]: 0 => exit 0
// RUN[exit-in-thread]: 1 => exit 17
// RUN[exit-while-others-spin]: 2 => exit 18
// RUN[return-while-others-block]: 3 => exit 19
// RUN[raw-exit-of-main]: 4 => exit 0
// RUN[abort-in-thread]: 5 => SIGABRT core
// RUN[fault-in-thread]: 6 => SIGSEGV core
// RUN[killed]: 7 => SIGKILL
// RUN[all-exit-raw]: 8 => exit 3
// RUN[raw-exit-group]: 9 => exit 77
// RUN[maps-after-main]: 10 => exit 0
// STRESS: tiny-blocks
//
// A process ends in many orders: main first, another thread by exit_group, while others compute or
// block, by a fault or an abort in a thread.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int how;
static volatile int spinning;
static pthread_t main_thread;

static void at_exit(void)
{
    say("atexit runs\n");
}

static void *spin(void *arg)
{
    __atomic_fetch_add(&spinning, 1, __ATOMIC_RELAXED);
    for (volatile uint64_t x = 1;; x++)
        if (arg)
            pause();
    return NULL;
}

// /proc/self is empty once the first thread has ended: who asks there learns no name of the file.
static void map_a_file(void)
{
    char line[512], start[32];
    bool is_named = false;
    int fd = open("/proc/thread-self/exe", O_RDONLY);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    FILE *maps = fopen("/proc/thread-self/maps", "r");
    snprintf(start, sizeof(start), "%08lx-", (unsigned long)at);
    while (maps && fgets(line, sizeof(line), maps))
        is_named |= strncmp(line, start, strlen(start)) == 0 && strstr(line, "exits");
    say("the mapping is %s\n", is_named ? "named" : "not named");
}

static void *work(void *arg)
{
    switch (how) {
    case 0:
        pthread_join(main_thread, NULL);
        say("main has gone, thread goes on\n");
        break;
    case 1:
        exit(17);
    case 4:
    case 8:
    case 10:
        wait_until_dead(getpid());
        say("the last thread\n");
        if (how == 10)
            map_a_file();
        if (how == 8)
            syscall(SYS_exit, 3);
        break;
    case 5:
        abort();
    case 6:
        *(volatile int *)16 = 1;
        break;
    case 9:
        syscall(SYS_exit_group, 77);
    }
    return arg;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? atoi(argv[1]) : 0;
    main_thread = pthread_self();
    if (how != 5 && how != 6 && how != 7)
        atexit(at_exit);
    pthread_t thread, spinner;
    bool with_spinners = how == 1 || how == 2 || how == 3 || how == 5 || how == 6 || how == 7;
    for (long i = 0; with_spinners && i < 3; i++)
        pthread_create(&spinner, NULL, spin, how == 3 || i == 2 ? &how : NULL);
    while (with_spinners && spinning < 3)
        usleep(100);
    pthread_create(&thread, NULL, work, NULL);
    switch (how) {
    case 0:
        pthread_exit(NULL);
    case 2:
        return 18;
    case 3:
        return 19;
    case 4:
    case 8:
    case 10:
        syscall(SYS_exit, 5);
        break;
    case 7:
        raise(SIGKILL);
    }
    for (;;)
        pause();
}
