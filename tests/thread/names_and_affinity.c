// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// Thread names, affinity masks, scheduling parameters, priorities and tids, seen through calls and
// through /proc/self/task.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static pthread_barrier_t barrier;

static void *body(void *arg)
{
    char name[16], path[64], from_proc[32] = "";
    snprintf(name, sizeof name, "worker-%ld", (long)arg);
    CHECK(prctl(PR_SET_NAME, name) == 0);
    pthread_barrier_wait(&barrier);
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", syscall(SYS_gettid));
    int fd = open(path, O_RDONLY);
    CHECK(read(fd, from_proc, sizeof from_proc - 1) > 0);
    close(fd);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    bool pinned = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
    sched_yield();
    char *line = NULL;
    CHECK(asprintf(&line, "%s", from_proc) > 0 && (!pinned || sched_getcpu() == 0));
    pthread_barrier_wait(&barrier);
    return line;
}

int main(void)
{
    pthread_t threads[3];
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    pthread_barrier_wait(&barrier);
    int tasks = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(dir));)
        tasks += entry->d_name[0] != '.';
    closedir(dir);
    pthread_barrier_wait(&barrier);
    say("tasks %d\n", tasks);
    for (int i = 0; i < 3; i++) {
        void *line;
        pthread_join(threads[i], &line);
        say("name %s", (char *)line);
    }
    char name[16];
    CHECK(prctl(PR_GET_NAME, name) == 0);
    say("main is still %s\n", name);
    pthread_setname_np(pthread_self(), "renamed");
    prctl(PR_GET_NAME, name);
    say("now %s\n", name);
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    say("affinity as nprocessors %d\n", CPU_COUNT(&all) == sysconf(_SC_NPROCESSORS_ONLN));
    struct sched_param parameter = {0};
    say("policy %d, nice %d\n", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
    SHOW(sched_setscheduler(0, SCHED_BATCH, &parameter));
    SHOW(nice(3));
    SHOW(sched_setscheduler(0, 99, &parameter));
    return 0;
}
