// SPDX-License-Identifier: MIT
//
// Programs whose use of memory is known: the word says which. They use no stdio, so that every
// allocation is one that is written here. A line "peak N" says the most bytes that are live
// at once.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static void *blocks[4096];
static volatile size_t sink;

static void say(const char *word, size_t number)
{
    char text[64], *at = text + sizeof(text);
    *--at = '\n';
    do {
        *--at = (char)('0' + number % 10);
    } while (number /= 10);
    *--at = ' ';
    sink = (size_t)write(1, word, strlen(word));
    sink = (size_t)write(1, at, (size_t)(text + sizeof(text) - at));
}

NOINLINE void *allocate(size_t size)
{
    void *block = malloc(size);
    sink++;
    return block;
}

NOINLINE void never_frees(void)
{
    size_t sum = 0;
    for (size_t i = 0; i < 1000; i++) {
        blocks[i] = allocate(16 * (i + 1));
        sum += 16 * (i + 1);
    }
    say("peak", sum);
}

NOINLINE void steady(void)
{
    for (size_t i = 0; i < 1100; i++)
        blocks[i] = allocate(100);
    say("peak", 110000);
}

NOINLINE void at_the_top(void)
{
    blocks[100] = malloc(50000);
    sink++;
}

NOINLINE void frees_late(void)
{
    for (size_t i = 0; i < 100; i++)
        blocks[i] = allocate(1000);
    at_the_top();
    say("peak", 100 * 1000 + 50000);
    for (size_t i = 0; i <= 100; i++)
        free(blocks[i]);
    for (size_t i = 0; i < 50; i++)
        blocks[i] = allocate(1000); // lower than before
}

NOINLINE void first_summit(void)
{
    blocks[1] = malloc(8000);
    sink++;
}

NOINLINE void second_summit(void)
{
    blocks[2] = malloc(8000);
    sink++;
}

NOINLINE void two_equal_peaks(void)
{
    blocks[0] = allocate(2000);
    first_summit();
    free(blocks[1]);
    second_summit();
    say("peak", 10000);
    free(blocks[2]);
    free(blocks[0]);
}

NOINLINE void *summit_in_thread(void *arg)
{
    for (size_t i = 0; i < 64; i++)
        blocks[i] = allocate(10000);
    for (size_t i = 0; i < 64; i++)
        free(blocks[i]);
    return arg;
}

NOINLINE void peak_in_thread(void)
{
    pthread_t thread;
    blocks[100] = allocate(3000);
    pthread_create(&thread, NULL, summit_in_thread, NULL);
    pthread_join(thread, NULL);
    blocks[101] = allocate(4000);
}

NOINLINE void *grow(void *block, size_t size)
{
    void *grown = realloc(block, size);
    sink++;
    return grown;
}

NOINLINE void realloc_growth(void)
{
    void *block = NULL;
    for (size_t size = 1000; size <= 100000; size += 1000)
        block = grow(block, size);
    say("peak", 100000);
    block = grow(block, 500);
    free(block);
    blocks[0] = allocate(400);
}

// Large enough for pages of its own: their number stays the same while the block grows.
NOINLINE void growth_within_pages(void)
{
    void *block = NULL;
    for (size_t size = 190000; size <= 200000; size += 1000)
        block = grow(block, size);
    say("peak", 200000);
    free(block);
}

// malloc, calloc, realloc and those that align: 1000 + 2000 + 3000 + …
NOINLINE void every_function(void)
{
    void *aligned = NULL;
    blocks[0] = malloc(1000);
    blocks[1] = calloc(2, 1000);
    blocks[2] = realloc(NULL, 3000);
    sink = (size_t)posix_memalign(&aligned, 64, 4000);
    blocks[3] = aligned;
    blocks[4] = aligned_alloc(128, 5120);
    blocks[5] = reallocarray(NULL, 6, 1000);
    say("peak", 1000 + 2000 + 3000 + 4000 + 5120 + 6000);
    for (int i = 0; i < 6; i++)
        free(blocks[i]);
}

NOINLINE void ignored(void)
{
    blocks[0] = malloc(7000);
    blocks[1] = grow(malloc(10), 20000); // stays ignored
    sink++;
}

NOINLINE void *wrapper(size_t size)
{
    void *block = malloc(size);
    sink++;
    return block;
}

NOINLINE void wrapped_and_ignored(void)
{
    ignored();
    blocks[2] = wrapper(5000);
    blocks[3] = malloc(600);
    say("peak", 5600);
}

// An allocator that no table knows.
static char own_arena[16384];
NOINLINE void *own_get(size_t size)
{
    static size_t used;
    void *p = own_arena + used;
    used += size;
    sink++;
    return p;
}
NOINLINE void own_give(void *p)
{
    blocks[1] = p;
    sink++;
}
NOINLINE void own_allocator(void)
{
    blocks[0] = own_get(3000);
    void *p = own_get(5000);
    own_give(p);
    blocks[2] = own_get(1000);
    say("peak", 8000);
}

NOINLINE void recursion(int depth)
{
    if (depth == 0) {
        blocks[0] = malloc(9000);
        return;
    }
    recursion(depth - 1);
    sink++;
}

NOINLINE void deep(void)
{
    recursion(60);
    say("peak", 9000);
}

NOINLINE void maps_pages(void)
{
    char *pages = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 1 << 20);
    munmap(pages + (16 << 20), 16 << 20);
    char *more = mremap(pages, 16 << 20, 48 << 20, MREMAP_MAYMOVE);
    munmap(more, 48 << 20);
}

// 8 MiB attached and detached, beside 4 MiB that stay.
NOINLINE void maps_shared(void)
{
    int id = shmget(IPC_PRIVATE, 8 << 20, IPC_CREAT | 0600), other = shmget(IPC_PRIVATE, 4 << 20,
                                                                             IPC_CREAT | 0600);
    char *first = shmat(id, NULL, 0), *second = shmat(other, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    shmctl(other, IPC_RMID, NULL);
    first[0] = second[0] = 1;
    shmdt(first);
}

NOINLINE size_t uses_stack(size_t depth)
{
    volatile char frame[4096];
    frame[depth % sizeof(frame)] = 1;
    if (depth == 0) {
        blocks[0] = allocate(100);
        return frame[0];
    }
    return uses_stack(depth - 1) + frame[0];
}

// Tells how many blocks of 1000 bytes are live, until it is killed.
NOINLINE void until_killed(void)
{
    size_t count = 0;
    for (;;) {
        blocks[count % 4096] = allocate(1000);
        count++;
        say("live", count);
        if (count == 4000)
            usleep(100000000);
    }
}

NOINLINE void forks(void)
{
    blocks[0] = allocate(5000);
    if (fork() == 0) {
        free(blocks[0]);
        blocks[1] = allocate(700);
        _exit(0);
    }
    usleep(300000);
    blocks[2] = allocate(900);
}

NOINLINE void *in_parent(size_t size)
{
    sink++;
    return malloc(size);
}

NOINLINE void *in_child(size_t size)
{
    sink++;
    return malloc(size);
}

// The parent allocates and maps more before its child does anything.
NOINLINE void forks_and_goes_on(void)
{
    int ends[2];
    char byte;
    sink = (size_t)pipe(ends);
    blocks[0] = allocate(5000);
    if (fork() == 0) {
        sink = (size_t)read(ends[0], &byte, 1);
        blocks[1] = in_child(700);
        _exit(0);
    }
    blocks[2] = in_parent(900);
    blocks[3] = mmap(NULL, 7 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    usleep(50000);
    sink = (size_t)write(ends[1], "", 1);
}

// The most stack and the most pages are not when the most heap is.
NOINLINE void peaks_apart(void)
{
    volatile char frame[2 << 20];
    for (size_t i = 0; i < sizeof(frame); i += 4096)
        frame[i] = 1;
    munmap(mmap(NULL, 50 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 50 << 20);
}

NOINLINE void peaks(void)
{
    for (int i = 0; i < 10; i++)
        sink = (size_t)allocate(100);
    peaks_apart();
    for (int i = 0; i < 5000; i++)
        sink = (size_t)allocate(100);
}

// What its child has is older: blocks that it frees since, and perhaps gets again; pages.
NOINLINE void forks_and_frees(void)
{
    enum { PAGES = 7 << 20, HOLE = 2 << 20 };
    int ends[2];
    char byte;
    char *pages = mmap(NULL, PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sink = (size_t)pipe(ends);
    for (int i = 0; i < 100; i++)
        blocks[i] = allocate(5000);
    if (fork() == 0) {
        sink = (size_t)read(ends[0], &byte, 1);
        blocks[100] = in_child(700);
        free(blocks[0]);
        _exit(0);
    }
    for (int i = 0; i < 50; i++)
        free(blocks[i]);
    for (int i = 0; i < 25; i++)
        blocks[i] = in_parent(5000);
    blocks[50] = realloc(blocks[50], 20000);
    for (int i = 0; i < 500000; i++)
        free(in_parent(100 + (size_t)i % 900));
    munmap(pages + HOLE, HOLE);
    munmap(pages, PAGES);
    usleep(50000);
    sink = (size_t)write(ends[1], "", 1);
    wait(NULL);
    free(blocks[99]);
}

// As daemons do.
NOINLINE void forks_and_ends(void)
{
    pid_t parent = getpid();
    blocks[0] = allocate(5000);
    blocks[1] = allocate(300);
    if (fork() == 0) {
        while (getppid() == parent)
            usleep(1000);
        free(blocks[0]);
        blocks[2] = in_child(700);
        return;
    }
    free(blocks[1]);
}

static pthread_barrier_t filled;

static void *churn(void *unused)
{
    void *last[2] = {NULL, NULL};
    pthread_barrier_wait(&filled);
    for (size_t i = 0;; i++) {
        free(last[i % 2]);
        last[i % 2] = malloc(100 + i % 7);
    }
    return unused;
}

// At once after its last allocation, while others keep the monitor busy.
NOINLINE void fills_and_forks(void)
{
    pthread_t thread;
    pthread_barrier_init(&filled, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, churn, NULL);
    pthread_barrier_wait(&filled);
    for (int i = 0; i < 100; i++)
        blocks[i] = allocate(10000);
    if (fork() == 0) {
        blocks[100] = in_child(700000);
        _exit(0);
    }
    wait(NULL);
    _exit(0);
}

NOINLINE void executes(void)
{
    blocks[0] = allocate(12345);
    execl("/no/such/program", "program", NULL);
    execl("/bin/true", "true", NULL);
}

NOINLINE void crashes(void)
{
    blocks[0] = allocate(12345);
    abort();
}

// Two million instructions between two blocks.
NOINLINE void counts(void)
{
    size_t n = 1000000;
    blocks[0] = allocate(100);
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
    blocks[1] = allocate(1000);
}

// Waits in steps for what the test asks meanwhile: a byte on standard input.
NOINLINE void waits(void)
{
    char byte;
    blocks[0] = allocate(1000);
    say("step", 1);
    if (read(0, &byte, 1) != 1)
        return;
    for (int i = 1; i < 100; i++)
        blocks[i] = allocate(2000);
    say("step", 2);
    if (read(0, &byte, 1) != 1)
        return;
    for (int i = 50; i < 100; i++)
        free(blocks[i]);
    for (int i = 0; i < 5000; i++)
        free(allocate(64));
    say("step", 3);
    sink = (size_t)read(0, &byte, 1);
}

// 96 MiB that are touched, and as many that are not.
NOINLINE void resident(void)
{
    char byte, *pages = mmap(NULL, 192 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
    memset(pages, 1, 96 << 20);
    say("step", 1);
    sink = (size_t)read(0, &byte, 1);
}

NOINLINE void stack_and_heap(void)
{
    sink = uses_stack(100);
}

NOINLINE size_t digs(size_t depth)
{
    volatile char frame[4096];
    frame[depth % sizeof(frame)] = 1;
    return depth == 0 ? frame[0] : digs(depth - 1) + frame[0];
}

// Nothing is asked for where the stack is deep.
NOINLINE void stack_before_heap(void)
{
    sink = digs(100);
    blocks[0] = allocate(70000);
}

// Events in quick succession share a stamp; what sleeps in between does not.
NOINLINE void sleeps_between(void)
{
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100 + round; i++)
            blocks[i] = allocate(333);
        usleep(20000);
        for (int i = 0; i < 100 + round; i++)
            free(blocks[i]);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"never_frees", never_frees},
    {"steady", steady},
    {"frees_late", frees_late},
    {"two_equal_peaks", two_equal_peaks},
    {"peak_in_thread", peak_in_thread},
    {"realloc_growth", realloc_growth},
    {"growth_within_pages", growth_within_pages},
    {"every_function", every_function},
    {"wrapped_and_ignored", wrapped_and_ignored},
    {"own_allocator", own_allocator},
    {"deep", deep},
    {"maps_pages", maps_pages},
    {"maps_shared", maps_shared},
    {"stack_and_heap", stack_and_heap},
    {"stack_before_heap", stack_before_heap},
    {"until_killed", until_killed},
    {"forks", forks},
    {"forks_and_goes_on", forks_and_goes_on},
    {"forks_and_frees", forks_and_frees},
    {"peaks", peaks},
    {"forks_and_ends", forks_and_ends},
    {"fills_and_forks", fills_and_forks},
    {"executes", executes},
    {"crashes", crashes},
    {"counts", counts},
    {"waits", waits},
    {"resident", resident},
    {"sleeps_between", sleeps_between},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++) {
        if (strcmp(programs[i].name, argv[1]) == 0) {
            programs[i].run();
            sink++;
            return 0;
        }
    }
    return 2;
}
