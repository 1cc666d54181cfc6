// SPDX-License-Identifier: MIT
//
// See pool.h. The names of mappings are counted because a long run may map and
// drop any number of different files.
#include "engine/aspace/pool.h"

#include <string.h>
#include <sys/mman.h>

#include "base/raw_syscall.h"

#define POOL_CHUNK     (1 * MiB)
#define POOL_MIN_SHIFT 5
#define POOL_CLASSES   15 // 32 bytes … 512 KiB

typedef struct FreeCell {
    struct FreeCell *next;
} FreeCell;

static FreeCell *pool_free_cells[POOL_CLASSES];
static u8 *pool_next;
static u8 *pool_end;

typedef struct Name {
    struct Name *next;
    u32 hash;
    u32 references;
    char text[];
} Name;

#define NAME_BUCKETS 1024
static Name *name_buckets[NAME_BUCKETS];

void *pool_map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        static const char message[] =
            "muninn: out of memory for the records of the client's mappings\n";
        raw_syscall3(SYS_write, 2, (u64)message, sizeof message - 1);
        raw_syscall1(SYS_exit_group, 125);
    }
    return p;
}

void pool_unmap(void *p, size_t size)
{
    munmap(p, size);
}

static u32 pool_class(size_t size)
{
    u32 size_class = 0;

    while (((size_t)1 << (size_class + POOL_MIN_SHIFT)) < size)
        size_class++;
    return size_class;
}

void *pool_alloc(size_t size)
{
    u32 size_class = pool_class(size);
    if (size_class >= POOL_CLASSES)
        return pool_map(PAGE_UP(size));

    FreeCell *cell = pool_free_cells[size_class];
    if (cell) {
        pool_free_cells[size_class] = cell->next;
        memset(cell, 0, size);
        return cell;
    }
    size_t cell_size = (size_t)1 << (size_class + POOL_MIN_SHIFT);
    if ((size_t)(pool_end - pool_next) < cell_size) {
        pool_next = pool_map(POOL_CHUNK);
        pool_end = pool_next + POOL_CHUNK;
    }
    void *p = pool_next;
    pool_next += cell_size;
    return p;
}

void pool_free(void *p, size_t size)
{
    u32 size_class = pool_class(size);
    if (size_class >= POOL_CLASSES) {
        pool_unmap(p, PAGE_UP(size));
        return;
    }
    FreeCell *cell = p;
    cell->next = pool_free_cells[size_class];
    pool_free_cells[size_class] = cell;
}

static u32 name_hash(const char *text)
{
    u32 hash = 2166136261u; // FNV-1a

    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 16777619u;
    return hash;
}

static Name *name_of(const char *interned)
{
    return (Name *)(interned - offsetof(Name, text));
}

const char *name_intern(const char *text)
{
    if (!text)
        return NULL;

    u32 hash = name_hash(text);
    Name **bucket = &name_buckets[hash % NAME_BUCKETS];
    for (Name *n = *bucket; n; n = n->next) {
        if (n->hash == hash && strcmp(n->text, text) == 0) {
            n->references++;
            return n->text;
        }
    }
    size_t len = strlen(text) + 1;
    Name *n = pool_alloc(sizeof *n + len);
    n->hash = hash;
    n->references = 1;
    memcpy(n->text, text, len);
    n->next = *bucket;
    *bucket = n;
    return n->text;
}

const char *name_retain(const char *interned)
{
    if (interned)
        name_of(interned)->references++;
    return interned;
}

void name_release(const char *interned)
{
    if (!interned)
        return;

    Name *n = name_of(interned);
    if (--n->references > 0)
        return;
    Name **link = &name_buckets[n->hash % NAME_BUCKETS];
    while (*link != n)
        link = &(*link)->next;
    *link = n->next;
    pool_free(n, sizeof *n + strlen(n->text) + 1);
}
