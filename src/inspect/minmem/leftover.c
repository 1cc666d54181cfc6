// SPDX-License-Identifier: MIT
//
// Processes below this one. It is the reaper of all its descendants (PR_SET_CHILD_SUBREAPER), so
// what a program has left behind, however it detached itself, becomes our child and is found
// by its parent in /proc.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/minmem/trial.h"

enum {
    PROCESSES_MAX = 65536,
    ROUNDS_MAX = 2000, // of a millisecond each: a process that the kernel holds is given up
};

typedef struct Process {
    pid_t pid, parent;
    u64 rss_bytes;
    bool is_below;
} Process;

static bool read_process(pid_t pid, Process *ret_process)
{
    char path[32], text[512];
    int parent;
    unsigned long long pages;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *behind = strrchr(text, ')'); // the name may contain anything
    // Fields 4 and 24 of proc(5).
    if (!behind || sscanf(behind + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
                                      " %*d %*d %*d %*d %*u %*u %llu", &parent, &pages) != 2)
        return false;
    *ret_process = (Process){.pid = pid, .parent = parent, .rss_bytes = pages * PAGE_SIZE};
    return true;
}

// All processes, in order of their pids. Returns how many; the array is to be freed.
static u32 list_processes(Process **ret_processes)
{
    DIR *proc = opendir("/proc");
    u32 count = 0, room = 0;
    Process *list = NULL;

    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        Process process;
        pid_t pid = atoi(entry->d_name);
        if (pid <= 0 || !read_process(pid, &process))
            continue;
        if (count == room) {
            room = room ? room * 2 : 256;
            Process *moved = room <= PROCESSES_MAX ? realloc(list, room * sizeof(*list)) : NULL;
            if (!moved)
                break;
            list = moved;
        }
        list[count++] = process;
    }
    if (proc)
        closedir(proc);
    *ret_processes = list;
    return count;
}

// A child may have a smaller pid than its parent: until nothing is added.
static void mark_below(Process *list, u32 count, pid_t root)
{
    bool has_more = true;

    while (has_more) {
        has_more = false;
        for (u32 i = 0; i < count; i++) {
            bool is_child = list[i].parent == root;
            for (u32 j = 0; j < count && !is_child; j++)
                is_child = list[j].is_below && list[j].pid == list[i].parent;
            if (is_child && !list[i].is_below)
                list[i].is_below = has_more = true;
        }
    }
}

u64 leftover_tree_rss(pid_t root)
{
    Process *list;
    u32 count = list_processes(&list);
    u64 sum = 0;

    mark_below(list, count, root);
    for (u32 i = 0; i < count; i++) {
        if (list[i].is_below || list[i].pid == root)
            sum += list[i].rss_bytes;
    }
    free(list);
    return sum;
}

// True: there is no child left to wait for, but the spared one.
static bool reap(pid_t spared)
{
    siginfo_t info;

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            return errno == ECHILD;
        if (info.si_pid == 0 || info.si_pid == spared)
            return false;
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

u32 leftover_end(pid_t spared)
{
    static const struct timespec pause = {0, 1000 * 1000};
    u32 ended = 0;

    for (u32 round = 0; !reap(spared) && round < ROUNDS_MAX; round++) {
        Process *list;
        u32 count = list_processes(&list), alive = 0;
        mark_below(list, count, getpid());
        for (u32 i = 0; i < count; i++) {
            if (!list[i].is_below || list[i].pid == spared)
                continue;
            alive++;
            kill(list[i].pid, SIGKILL);
        }
        free(list);
        ended = alive > ended ? alive : ended;
        if (alive == 0)
            break;
        nanosleep(&pause, NULL);
    }
    return ended;
}
