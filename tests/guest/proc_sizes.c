// SPDX-License-Identifier: MIT
// BUILD: -O1
//
// What a program reads of its own size in /proc: statm, stat and status agree with one another, and
// grow by what it maps and touches; maps is fresh when it is read again from the start.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { MIB = 1024 * 1024, SIZE = 64 * MIB };

typedef struct Sizes {
    long vm_kib, rss_kib;
} Sizes;

static void read_text(const char *path, char *text, size_t max)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, max - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
}

static Sizes from_statm(void)
{
    char text[4096];
    Sizes s = {0, 0};
    read_text("/proc/self/statm", text, sizeof text);
    CHECK(sscanf(text, "%ld %ld", &s.vm_kib, &s.rss_kib) == 2);
    return (Sizes){s.vm_kib * 4, s.rss_kib * 4};
}

static Sizes from_status(void)
{
    char text[8192];
    read_text("/proc/self/status", text, sizeof text);
    return (Sizes){atol(strstr(text, "VmSize:") + 7), atol(strstr(text, "VmRSS:") + 6)};
}

static Sizes from_stat(void)
{
    char text[4096], path[64];
    Sizes s;
    snprintf(path, sizeof path, "/proc/%d/stat", getpid());
    read_text(path, text, sizeof text);
    char *at = strrchr(text, ')');
    for (int field = 2; field < 23; field++)
        at = strchr(at + 1, ' ');
    CHECK(sscanf(at, "%ld %ld", &s.vm_kib, &s.rss_kib) == 2);
    return (Sizes){s.vm_kib / 1024, s.rss_kib * 4};
}

static bool near(long a, long b, long tolerance)
{
    return a - b < tolerance && b - a < tolerance;
}

static void show_growth(const char *how, Sizes before, Sizes after)
{
    say("%s: a small program %d, grew by the mapping %d, by what was touched %d\n", how,
        before.vm_kib < 32 * 1024 && before.rss_kib < 8 * 1024,
        near(after.vm_kib - before.vm_kib, SIZE / 1024, 64),
        near(after.rss_kib - before.rss_kib, SIZE / 4 / 1024, 4096));
}

static bool lists(int fd, bool by_pread, void *address)
{
    static char text[65536];
    char start[32];
    size_t done = 0;
    if (!by_pread)
        lseek(fd, 0, SEEK_SET);
    for (ssize_t n; (n = by_pread ? pread(fd, text + done, sizeof text - 1 - done, done)
                                  : read(fd, text + done, sizeof text - 1 - done)) > 0;)
        done += n;
    text[done] = '\0';
    snprintf(start, sizeof start, "%lx-", (unsigned long)address);
    return strstr(text, start) != NULL;
}

int main(void)
{
    Sizes statm = from_statm(), status = from_status(), stat = from_stat();
    say("agree: %d %d\n",
        near(statm.vm_kib, status.vm_kib, 64) && near(stat.vm_kib, statm.vm_kib, 64),
        near(statm.rss_kib, status.rss_kib, 4096) && near(stat.rss_kib, statm.rss_kib, 4096));
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, SIZE / 4);
    show_growth("statm", statm, from_statm());
    show_growth("status", status, from_status());
    show_growth("stat", stat, from_stat());
    munmap(p, SIZE);

    int maps = open("/proc/self/maps", O_RDONLY);
    for (int i = 0; i < 4; i++) {
        void *far_away = (void *)(0x30000000000 + i * 0x1000000l);
        say("before: %d", lists(maps, i & 1, far_away));
        CHECK(mmap(far_away, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              far_away);
        say(", mapped: %d", lists(maps, i & 1, far_away));
        munmap(far_away, 4096);
        say(", unmapped: %d, close on exec: %d\n", lists(maps, i & 1, far_away),
            fcntl(maps, F_GETFD));
    }
    return 0;
}
