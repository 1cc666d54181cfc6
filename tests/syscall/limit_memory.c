// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[space]: space
// RUN[data]: data
// RUN[errors]: errors
// RUN[exec]: exec
// RUN[vfork]: vfork
// RUN[malloc]: malloc
// RUN[proc]: proc
// MUNINN: --trace-children=no
// MUNINN: --trace-children=yes
//
// RLIMIT_AS and RLIMIT_DATA count the program's own memory and nothing of the engine's, and pass
// on to what it executes.
#include "guest.h"
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#define MB (1024ul * 1024)

static void set(int resource, unsigned long soft, unsigned long hard)
{
    struct rlimit limit = {soft, hard};
    CHECK(setrlimit(resource, &limit) == 0);
}

static void show(int resource, const char *name)
{
    struct rlimit limit = {1, 2};
    CHECK(getrlimit(resource, &limit) == 0);
    say("%s %ld %ld\n", name, (long)limit.rlim_cur, (long)limit.rlim_max);
}

static char *map(unsigned long mb, int prot, int flags)
{
    return mmap(NULL, mb * MB, prot, flags | MAP_ANONYMOUS, -1, 0);
}

static void try(const char *what, bool worked)
{
    say("%s: %s\n", what, worked ? "works" : error_name(errno));
    errno = 0;
}
#define MAPS(mb, prot, flags) (map(mb, prot, flags) != MAP_FAILED)

static void space(void)
{
    set(RLIMIT_AS, 100 * MB, RLIM_INFINITY);
    char *first = map(40, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
    try("40", first != MAP_FAILED);
    try("40 more", MAPS(40, PROT_READ, MAP_SHARED));
    try("40 too many", MAPS(40, PROT_NONE, MAP_PRIVATE));
    try("fixed on top", mmap(first, 40 * MB, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == first);
    try("fixed and longer", mmap(first, 70 * MB, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == first);
    try("no replace", mmap(first, 40 * MB, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == first);
    try("growing", mremap(first, 40 * MB, 70 * MB, MREMAP_MAYMOVE) != MAP_FAILED);
    try("growing a little", (first = mremap(first, 40 * MB, 50 * MB, MREMAP_MAYMOVE)) != MAP_FAILED);
    try("shrinking", mremap(first, 50 * MB, 10 * MB, 0) == first);
    try("a copy", mremap(first, 10 * MB, 10 * MB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) != MAP_FAILED);
    void *end = sbrk(0);
    try("break", brk((char *)end + 60 * MB) == 0);
    try("small break", brk((char *)end + 4 * MB) == 0);
    int segment = shmget(IPC_PRIVATE, 60 * MB, 0600);
    void *attached = shmat(segment, NULL, 0);
    try("segment", attached != (void *)-1);
    shmctl(segment, IPC_RMID, NULL);
    set(RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY);
    try("60 without a limit", MAPS(60, PROT_READ, MAP_PRIVATE));
}

static void data(void)
{
    set(RLIMIT_DATA, 50 * MB, RLIM_INFINITY);
    char *reserved = map(200, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
    try("reserved", reserved != MAP_FAILED);
    try("shared", MAPS(100, PROT_READ | PROT_WRITE, MAP_SHARED));
    try("written", MAPS(30, PROT_READ | PROT_WRITE, MAP_PRIVATE));
    try("too much", MAPS(30, PROT_READ | PROT_WRITE, MAP_PRIVATE));
    try("made writable", mprotect(reserved, 30 * MB, PROT_READ | PROT_WRITE) == 0);
    try("made readable", mprotect(reserved, 30 * MB, PROT_READ) == 0);
    try("a little writable", mprotect(reserved, 5 * MB, PROT_READ | PROT_WRITE) == 0);
    void *end = sbrk(0);
    try("break", brk((char *)end + 30 * MB) == 0);
    try("small break", brk((char *)end + 2 * MB) == 0);
}

static void errors(void)
{
    struct rlimit limit = {5 * MB, 4 * MB};

    SHOW(setrlimit(RLIMIT_AS, &limit));
    SHOW(syscall(SYS_setrlimit, RLIMIT_AS, 8));
    SHOW(syscall(SYS_setrlimit, RLIMIT_DATA, NULL));
    SHOW(syscall(SYS_getrlimit, RLIMIT_AS, NULL));
    SHOW(syscall(SYS_getrlimit, RLIMIT_AS, 8));
    SHOW(syscall(SYS_getrlimit, 99, &limit));
    SHOW(syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, NULL));
    SHOW(syscall(SYS_prlimit64, getpid(), RLIMIT_AS, NULL, 8));
    SHOW(syscall(SYS_prlimit64, 99999999, RLIMIT_AS, NULL, &limit));
    SHOW(syscall(SYS_prlimit64, -5, RLIMIT_AS, NULL, &limit));
    struct rlimit low = {100 * MB, 200 * MB}, high = {100 * MB, 300 * MB}, old;
    SHOW(prlimit(0, RLIMIT_AS, &low, &old));
    SHOW(prlimit(getpid(), RLIMIT_AS, NULL, &old));
    say("%ld %ld\n", (long)old.rlim_cur, (long)old.rlim_max);
    if (geteuid() == 0) {
        SHOW(setrlimit(RLIMIT_AS, &high)); // privileged
        show(RLIMIT_AS, "AS");
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    }
    high.rlim_max = 400 * MB;
    SHOW(setrlimit(RLIMIT_AS, &high));
    show(RLIMIT_AS, "AS");
}

static char own_path[4096];

static void execute(void)
{
    execl(own_path, "limit_memory", "look", NULL);
    say("FAIL not executed: %s\n", error_name(errno));
}

static void pass_on(void)
{
    pid_t child = fork();
    if (child == 0) {
        set(RLIMIT_AS, 300 * MB, 400 * MB);
        set(RLIMIT_DATA, 200 * MB, RLIM_INFINITY);
        SHOW(execl("/nowhere", "nowhere", NULL));
        show(RLIMIT_AS, "AS");
        execute();
    }
    wait_and_show("child", child);
    show(RLIMIT_AS, "AS");
}

static void by_vfork(void)
{
    set(RLIMIT_AS, 500 * MB, RLIM_INFINITY);
    pid_t child = vfork();
    if (child == 0) {
        set(RLIMIT_AS, 300 * MB, 300 * MB);
        execute();
        _exit(1);
    }
    wait_and_show("child", child);
    show(RLIMIT_AS, "AS");
}

static void exhaust(void)
{
    size_t total = 0;

    set(RLIMIT_AS, 200 * MB, 200 * MB);
    while (total < 400 * MB && malloc(MB / 2))
        total += MB / 2;
    say("about %zu\n", (total / MB + 10) / 20 * 20);
}

static void proc(void)
{
    char text[4096];

    set(RLIMIT_AS, 300 * MB, 400 * MB);
    int fd = open("/proc/self/limits", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);
    CHECK(length > 0);
    text[length] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, "space") || strstr(line, "data") || strstr(line, "Limit"))
            say("%s|\n", line);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } rows[] = {{"space", space},    {"data", data},      {"errors", errors}, {"exec", pass_on},
                {"vfork", by_vfork}, {"malloc", exhaust}, {"proc", proc}};

    CHECK(argc == 2);
    if (strcmp(argv[1], "look") == 0) {
        show(RLIMIT_AS, "AS");
        show(RLIMIT_DATA, "DATA");
        try("500", MAPS(500, PROT_NONE, MAP_PRIVATE));
        return 0;
    }
    CHECK(readlink("/proc/self/exe", own_path, sizeof own_path - 1) > 0);
    show(RLIMIT_AS, "AS");
    show(RLIMIT_DATA, "DATA");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, argv[1]) == 0)
            rows[i].run();
    return 0;
}
