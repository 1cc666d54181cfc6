// SPDX-License-Identifier: MIT
//
// Preloaded into muninn-inspect where no cgroup can be made: a directory that is made gets the
// files of a cgroup of version 2, and its limit is enforced on the program as RLIMIT_DATA. A log
// ($FAKE_CGROUP_LOG) tells what was done to it.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char group[PATH_MAX];
static const char *const files[] = {"cgroup.procs", "cgroup.events", "cgroup.kill",
                                    "memory.max", "memory.events", "memory.peak",
                                    "memory.oom.group", "memory.swap.max"};

static void note(const char *format, ...)
{
    va_list arguments;
    FILE *log = fopen(getenv("FAKE_CGROUP_LOG"), "a");

    if (!log)
        return;
    va_start(arguments, format);
    vfprintf(log, format, arguments);
    va_end(arguments);
    fclose(log);
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t) = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");
    int result = real(path, mode);
    char name[PATH_MAX + 32];

    snprintf(group, sizeof(group), "%s", path);
    for (size_t i = 0; result == 0 && i < sizeof(files) / sizeof(*files); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, files[i]);
        close(open(name, O_CREAT | O_WRONLY, 0644));
    }
    note("mkdir\n");
    return result;
}

int rmdir(const char *path)
{
    int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "rmdir");
    char name[PATH_MAX + 32];

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, files[i]);
        unlink(name);
    }
    note("rmdir\n");
    return real(path);
}

int execvp(const char *file, char *const argv[])
{
    int (*real)(const char *, char *const *) =
        (int (*)(const char *, char *const *))dlsym(RTLD_NEXT, "execvp");
    char name[PATH_MAX + 32], text[32] = "";
    struct rlimit limit;

    snprintf(name, sizeof(name), "%s/memory.max", group);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && text[0] != 'm') {
        limit.rlim_cur = limit.rlim_max = strtoull(text, NULL, 10);
        setrlimit(RLIMIT_DATA, &limit);
    }
    snprintf(name, sizeof(name), "%s/cgroup.procs", group);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    char procs[8] = "";
    if (fd >= 0 && read(fd, procs, sizeof(procs) - 1) > 0)
        note("exec with %.*s after %s\n", (int)strcspn(text, "\n"), text, procs);
    unsetenv("LD_PRELOAD");
    return real(file, argv);
}
