// SPDX-License-Identifier: MIT
//
// events SCENARIO N: allocates and frees in ways that a profiler may miscount, and prints how
// many blocks and bytes it has asked for and how many it has freed. What the C library
// allocates beside it is the same for N = 0 and N > 0.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <new>
#include <thread>
#include <unistd.h>

#include "muninn/client.h"

static std::atomic<long> blocks, bytes, frees;

static void *got(void *p, size_t size)
{
    if (p) {
        blocks++;
        bytes += (long)size;
    }
    return p;
}

static void gone(long n = 1)
{
    frees += n;
}

static void keep(void *p)
{
    asm volatile("" : : "r"(p) : "memory");
}

static void release(void *p)
{
    free(p);
    gone();
}

static void family(int n)
{
    for (int i = 0; i < n; i++) {
        size_t size = 1 + i % 300;
        release(got(malloc(size), size));
        release(got(calloc(3, size), 3 * size));
        release(got(aligned_alloc(64, 64 * size), 64 * size));
        void *p = NULL;
        if (posix_memalign(&p, 128, size) == 0)
            release(got(p, size));
        p = got(malloc(size), size);
        p = got(realloc(p, 2 * size), 2 * size); // the old one is gone
        gone();
        release(p);
    }
}

static void operators(int n)
{
    struct alignas(64) Wide { char bytes[192]; };
    for (int i = 0; i < n; i++) {
        char *a = (char *)got(new char[10], 10);
        Wide *w = (Wide *)got(new Wide, sizeof(Wide));
        void *p = got(::operator new(50, std::nothrow), 50);
        keep(a), keep(w), keep(p);
        delete[] a;
        delete w;
        ::operator delete(p);
        gone(3);
    }
}

// The exception itself is allocated within operator new, which never returns.
static void throws(int n)
{
    for (int i = 0; i < n; i++) {
        try {
            keep(::operator new((size_t)1 << 62));
        } catch (const std::bad_alloc &) {
        }
        void *p = got(malloc(77), 77);
        keep(p);
        release(p);
    }
}

static jmp_buf back;

static void jumps(int n)
{
    for (volatile int i = 0; i < n; i++) {
        void *volatile p = NULL;
        if (setjmp(back) == 0) {
            p = got(malloc(33), 33);
            longjmp(back, 1);
        }
        release(p);
    }
}

static void handler(int)
{
    void *p = got(malloc(44), 44);
    keep(p);
    release(p);
}

static void signals(int n)
{
    signal(SIGUSR1, handler);
    for (int i = 0; i < n; i++)
        raise(SIGUSR1);
}

static std::atomic<void *> there, here;

static void *take(std::atomic<void *> &from)
{
    void *p;
    while (!(p = from.exchange(nullptr)))
        usleep(0);
    return p;
}

static void put(std::atomic<void *> &to, void *p)
{
    void *empty = nullptr;
    while (!to.compare_exchange_weak(empty, p)) {
        empty = nullptr;
        usleep(0);
    }
}

// A block goes to another thread, which frees it and sends back one that may have its address.
static void threads(int n)
{
    std::thread other([n] {
        for (int i = 0; i < n; i++) {
            release(take(there));
            put(here, got(malloc(2000), 2000));
        }
    });
    for (int i = 0; i < n; i++) {
        put(there, got(malloc(2000), 2000));
        release(take(here));
    }
    other.join();
}

// An allocator of the program's own, under a name that is known.
static char pool[1 << 20];
static size_t pool_used;
extern "C" __attribute__((noinline)) void *je_malloc(size_t size)
{
    void *p = pool + pool_used;
    pool_used = (pool_used + size + 15) & ~(size_t)15;
    return p;
}
extern "C" __attribute__((noinline)) void je_free(void *p)
{
    keep(p);
}

static void renamed(int n)
{
    for (int i = 0; i < n; i++) {
        void *p = got(je_malloc(24), 24);
        keep(p);
        je_free(p);
        gone();
    }
}

// Blocks of different sizes that are freed at once, by one line; some stay for a while, some are
// large, and sometimes there is a system call between the two.
static void series(int n)
{
    void *kept[16] = {};
    for (int i = 0; i < n; i++) {
        size_t size = 1 + (unsigned)i * 7919u % 700 + (i % 97 == 96) * 70000;
        void *p = got(malloc(size), size);
        keep(p);
        if (i % 41 == 40)
            getppid();
        if (i % 29 == 28) {
            void *old = kept[i % 16];
            kept[i % 16] = p;
            if (!old)
                continue;
            p = old;
        }
        free(p);
        gone();
    }
    for (void *p : kept) {
        free(p);
        if (p)
            gone();
    }
}

static void requests(int n)
{
    static char memory[4096];
    for (int i = 0; i < n; i++) {
        MUNINN_MALLOCLIKE_BLOCK(memory, 100, 0, 0);
        got(memory, 100);
        MUNINN_FREELIKE_BLOCK(memory, 0);
        gone();
        MUNINN_CREATE_MEMPOOL(memory, 0, 0);
        MUNINN_MEMPOOL_ALLOC(memory, memory + 16, 32);
        MUNINN_MEMPOOL_ALLOC(memory, memory + 64, 32);
        got(memory, 32), got(memory, 32);
        MUNINN_DESTROY_MEMPOOL(memory);
        gone(2);
    }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*fn)(int); } scenarios[] = {
        {"family", family}, {"operators", operators}, {"throws", throws}, {"jumps", jumps},
        {"signals", signals}, {"threads", threads}, {"renamed", renamed}, {"requests", requests},
        {"series", series},
    };
    for (auto &scenario : scenarios)
        if (argc > 2 && strcmp(argv[1], scenario.name) == 0)
            scenario.fn(atoi(argv[2]));
    if (argc > 3)
        raise(SIGKILL);
    char line[100];
    int size = snprintf(line, sizeof line, "%ld %ld %ld\n", blocks.load(), bytes.load(),
                        frees.load());
    return write(1, line, (size_t)size) != size;
}
