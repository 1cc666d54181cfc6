// SPDX-License-Identifier: MIT
//
// Maps thousands of damaged copies of itself as code: the engine reads their
// symbols and must come to no harm.
// BUILD: dynamic static stripped
// PLAIN
// STDOUT: mapped
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 1500 };

static unsigned long long state = 88172645463325252ull;

static unsigned long long next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// Anything in the headers, and words of the tables that they lead to.
static void damage(unsigned char *image, size_t size)
{
    static const unsigned long long evil[] = {
        0, 1, ~0ull, 1ull << 63, ~0ull >> 1, 0xffffffff, 1ull << 32, 4096, 1ull << 40,
    };
    unsigned count = 1 + (unsigned)(next_random() % 4);
    for (unsigned i = 0; i < count; i++) {
        size_t limit = next_random() % 2 ? 1024 : size;
        size_t at = (next_random() % (limit - 8)) & ~3ull;
        unsigned long long value = evil[next_random() % (sizeof evil / sizeof *evil)];
        memcpy(image + at, &value, next_random() % 2 ? 8 : 4);
    }
    memcpy(image, ELFMAG, SELFMAG);
}

int main(void)
{
    struct stat st;
    int own = open("/proc/self/exe", O_RDONLY);
    if (own < 0 || fstat(own, &st) < 0)
        return 1;
    size_t size = (size_t)st.st_size;
    unsigned char *good = malloc(size), *bad = malloc(size);
    if (read(own, good, size) != (ssize_t)size)
        return 2;
    int fd = memfd_create("damaged", 0);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(bad, good, size);
        damage(bad, size);
        size_t len = i % 5 ? size : next_random() % size;
        if (ftruncate(fd, 0) || pwrite(fd, bad, len, 0) != (ssize_t)len)
            return 3;
        if (i % 100 == 0 && ftruncate(fd, 1ll << 40)) // sparse: every offset is inside
            return 4;
        for (off_t at = 0; at < (off_t)len; at += 4096 * (1 + (off_t)len / 40000)) {
            void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, at);
            if (map != MAP_FAILED)
                munmap(map, 4096);
        }
    }
    puts("mapped");
    return 0;
}
