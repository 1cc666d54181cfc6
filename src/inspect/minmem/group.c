// SPDX-License-Identifier: MIT
//
// A cgroup of version 2 of our own. Where one may be made depends on who manages the machine: a
// group with processes in it can give no controllers to groups below it, so ours is a
// sibling of our own, or of one above it, wherever the memory controller is handed down and the
// directory is ours to write: with systemd the user's delegated subtree, as root anywhere.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/minmem/trial.h"

// ----------------------------------------------------------------------- files

static bool read_file(const char *group, const char *name, char *text, size_t size)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", group, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool write_file(const char *group, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    size_t size = strlen(text);

    snprintf(path, sizeof(path), "%s/%s", group, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, size) == (ssize_t)size;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return is_written;
}

// The number behind `key` at the beginning of a line; 0: there is none.
static u64 read_key(const char *group, const char *name, const char *key)
{
    char text[4096];
    size_t length = strlen(key);

    if (!read_file(group, name, text, sizeof(text)))
        return 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
        size_t size = strcspn(text, " \n");
        if (size == length && memcmp(text, word, length) == 0)
            return true;
        text += size;
    }
    return false;
}

// -------------------------------------------------------------------- the place

// Where version 2 is mounted; it may be beside version 1.
static bool find_mount(char mount[PATH_MAX])
{
    char line[PATH_MAX + 512], kind[64];
    bool is_found = false;
    FILE *file = fopen("/proc/self/mounts", "re");

    while (file && !is_found && fgets(line, sizeof(line), file))
        is_found = sscanf(line, "%*s %4095s %63s", mount, kind) == 2 && !strcmp(kind, "cgroup2");
    if (file)
        fclose(file);
    return is_found;
}

// The path of our own group, as this mount shows it.
static bool find_own(char own[PATH_MAX])
{
    char line[PATH_MAX + 64];
    bool is_found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        is_found = strncmp(line, "0::", 3) == 0;
        if (is_found)
            snprintf(own, PATH_MAX, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    }
    if (file)
        fclose(file);
    return is_found;
}

// Tries to make ours in `parent`, and to set a limit there.
static bool try_parent(Session *session, const char *parent)
{
    char controllers[1024], group[PATH_MAX];

    if (!read_file(parent, "cgroup.subtree_control", controllers, sizeof(controllers)) ||
        !has_word(controllers, "memory"))
        return false;
    int n = snprintf(group, sizeof(group), "%s/muninn-minmem.%d", parent, getpid());
    if (n >= (int)sizeof(group) || mkdir(group, 0755) != 0)
        return false;
    memcpy(session->group, group, sizeof(group));
    // A group of which one process has been killed is no proof of anything: all of it goes.
    write_file(group, "memory.oom.group", "1");
    write_file(group, "memory.swap.max", "0");
    // Whether processes may be moved there is only seen by doing it: with one that does nothing.
    pid_t pid = fork();
    if (pid == 0)
        _exit(group_enter(session) ? 0 : 1);
    siginfo_t info = {.si_status = 1};
    bool is_usable = pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 &&
                     info.si_status == 0 && group_set_limit(session, UINT64_MAX);
    if (!is_usable) {
        group_remove(group);
        session->group[0] = '\0';
    }
    return is_usable;
}

bool group_make(Session *session, char *why, size_t size)
{
    char mount[PATH_MAX], own[PATH_MAX], parent[2 * PATH_MAX];
    const char *given = session->options->cgroup;

    if (given) {
        snprintf(why, size, "no cgroup with the memory controller can be made in %s", given);
        return try_parent(session, given);
    }
    snprintf(why, size, "no cgroup of version 2 is mounted");
    if (!find_mount(mount) || !find_own(own))
        return false;
    snprintf(why, size, "no cgroup with the memory controller may be made under %s", mount);
    for (;;) {
        snprintf(parent, sizeof(parent), "%s%s", mount, strcmp(own, "/") == 0 ? "" : own);
        if (try_parent(session, parent))
            return true;
        char *slash = strrchr(own, '/');
        if (!slash || own[1] == '\0')
            return false;
        slash[slash == own] = '\0';
    }
}

// ----------------------------------------------------------------------- its use

bool group_set_limit(const Session *session, u64 limit_bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu\n", (unsigned long long)limit_bytes);
    return write_file(session->group, "memory.max", limit_bytes == UINT64_MAX ? "max\n" : text);
}

bool group_enter(const Session *session)
{
    return write_file(session->group, "cgroup.procs", "0");
}

u64 group_peak(const Session *session)
{
    char text[32];

    return read_file(session->group, "memory.peak", text, sizeof(text)) ? strtoull(text, NULL, 10)
                                                                        : 0;
}

u64 group_oom_kills(const Session *session)
{
    return read_key(session->group, "memory.events", "oom_kill");
}

// Returns how many there were.
static u32 kill_members(const char *group)
{
    char path[PATH_MAX + 64];
    int pid;
    u32 count = 0;

    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    FILE *file = fopen(path, "re");
    for (; file && fscanf(file, "%d", &pid) == 1; count++) {
        if (pid > 0 && pid != getpid())
            kill(pid, SIGKILL);
    }
    if (file)
        fclose(file);
    write_file(group, "cgroup.kill", "1"); // since Linux 5.14: also those born meanwhile
    return count;
}

u32 group_kill(const Session *session)
{
    static const struct timespec pause = {0, 1000 * 1000};
    u32 most = 0;

    for (u32 i = 0; i < 2000 && read_key(session->group, "cgroup.events", "populated") != 0; i++) {
        u32 count = kill_members(session->group);
        most = count > most ? count : most;
        nanosleep(&pause, NULL);
    }
    return most;
}

void group_remove(const char *group)
{
    static const struct timespec pause = {0, 1000 * 1000};

    for (u32 i = 0; i < 2000 && rmdir(group) != 0 && errno == EBUSY; i++) {
        kill_members(group);
        nanosleep(&pause, NULL);
    }
}
