// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// RUN: first "second argument"
// ENV: MARKER=visible in environ
//
// /proc/self (and /proc/<pid>, /proc/thread-self) show the client, not the engine: exe, cmdline,
// comm, environ, auxv, fd, task, cwd.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static ssize_t slurp(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t total = 0, got;
    while (fd >= 0 && (got = read(fd, buffer + total, size - 1 - total)) > 0)
        total += got;
    close(fd);
    buffer[total] = 0;
    return total;
}

static void show_exe(const char *link, const char *argv0)
{
    char target[PATH_MAX] = "", real[PATH_MAX];
    ssize_t length = readlink(link, target, sizeof target - 1);
    struct stat by_link, by_name;
    say("exe: length %d, path %d, ", length == (ssize_t)strlen(target),
        strcmp(target, realpath(argv0, real)) == 0);
    CHECK(stat(link, &by_link) == 0 && stat(argv0, &by_name) == 0);
    int fd = open(link, O_RDONLY);
    char magic[4];
    say("same file %d, opens %d\n", by_link.st_ino == by_name.st_ino,
        read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0);
    close(fd);
    char small[5];
    memset(small, '#', sizeof small);
    length = readlink(link, small, 4);
    say("truncated: %zd %.5s\n", length, small + 4);
}

static void list_numbers(const char *name, const char *path)
{
    bool seen[1024] = {false};
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            seen[atoi(entry->d_name) % 1024] = true;
    closedir(dir);
    say("%s:", name);
    for (int i = 0; i < 1024; i++)
        if (seen[i])
            say(" %d", i);
    say("\n");
}

int main(int argc, char **argv)
{
    static char buffer[65536], path[64];
    show_exe("/proc/self/exe", argv[0]);
    snprintf(path, sizeof path, "/proc/%d/exe", getpid());
    show_exe(path, argv[0]);
    show_exe("/proc/thread-self/exe", argv[0]);

    ssize_t size = slurp("/proc/self/cmdline", buffer, sizeof buffer);
    char *p = buffer;
    for (int i = 0; i < argc; i++, p += strlen(p) + 1)
        say("cmdline[%d] same %d\n", i, strcmp(p, argv[i]) == 0);
    say("cmdline ends %d\n", p - buffer == size);
    slurp("/proc/self/comm", buffer, sizeof buffer);
    say("comm %s", buffer);

    size = slurp("/proc/self/environ", buffer, sizeof buffer);
    int strings = 0, wrong = 0;
    for (p = buffer; p < buffer + size; p += strlen(p) + 1, strings++) {
        wrong += strcmp(p, environ[strings]) != 0;
        if (strncmp(p, "MARKER", 6) == 0)
            say("environ %s\n", p);
    }
    say("environ: all %d, wrong %d\n", environ[strings] == NULL, wrong);

    size = slurp("/proc/self/auxv", buffer, sizeof buffer);
    const unsigned long *auxv = (const unsigned long *)buffer;
    say("auxv: size %% 16 = %zd, as on the stack %d\n", size % 16,
        memcmp(auxv, environ + strings + 1, size) == 0);

    list_numbers("self/fd", "/proc/self/fd");
    CHECK(dup2(0, 100) == 100);
    list_numbers("self/fd", "/proc/self/fd");
    snprintf(path, sizeof path, "/proc/%d/fd", getpid());
    list_numbers("<pid>/fd", path);
    list_numbers("fdinfo", "/proc/self/fdinfo");
    list_numbers("/dev/fd", "/dev/fd");

    char cwd[PATH_MAX], link[PATH_MAX] = "";
    CHECK(readlink("/proc/self/cwd", link, sizeof link - 1) > 0);
    say("cwd %d\n", strcmp(getcwd(cwd, sizeof cwd), link) == 0);
    slurp("/proc/self/status", buffer, sizeof buffer);
    for (p = strtok(buffer, "\n"); p; p = strtok(NULL, "\n"))
        if (strncmp(p, "Name:", 5) == 0 || strncmp(p, "Threads:", 8) == 0)
            say("%s\n", p);
    return 0;
}
