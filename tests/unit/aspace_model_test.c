// SPDX-License-Identifier: MIT
//
// The records against reality. Long random sequences of the client's memory
// calls run twice: through aspace in one window of addresses, and natively in a
// twin window. Results must agree call by call, and after each sequence the
// records must say exactly what the kernel says in /proc/self/maps.
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/aspace/aspace_internal.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

#define OURS         0x030000000000ull
#define TWIN         0x500000000000ull
#define WINDOW_PAGES 48
#define PAGES(n)     ((u64)(n)*PAGE_SIZE)

static u64 random_state = 88172645463325252ull;

static u64 pick(u64 below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static i64 native(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    return raw_syscall6(nr, a0, a1, a2, a3, a4, a5);
}

// ---------------------------------------------------------------- what the kernel says

typedef struct HostMap {
    u64 start, end, offset, inode;
    bool readable, writable, shared;
} HostMap;

static HostMap host_maps[8192];
static int host_map_count;

static void read_host_maps(u64 low, u64 high)
{
    char line[4400], perms[8];
    unsigned long start, end, offset, inode;
    unsigned int dev_major, dev_minor;
    FILE *f = fopen("/proc/self/maps", "r");

    host_map_count = 0;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &start, &end, perms, &offset, &dev_major,
                   &dev_minor, &inode) != 7)
            continue;
        if (end <= low || start >= high)
            continue;
        host_maps[host_map_count++] =
            (HostMap){start, end, offset, inode, perms[0] == 'r', perms[1] == 'w', perms[3] == 's'};
    }
    fclose(f);
}

static bool agree(const HostMap *h, const Mapping *m, u64 at)
{
    u64 prot = host_prot(m->prot);

    if (h->shared != !!(m->flags & MAP_SHARED))
        return false;
    if (h->readable != !!(prot & PROT_READ))
        return false;
    // A guarded page is the one legal difference.
    bool busy;
    if (h->writable != !!(prot & PROT_WRITE)) {
        if (h->writable || !aspace_unguard_code(at, &busy))
            return false;
    }
    if (m->inode && m->dev != DEV_SHMEM && h->inode != m->inode)
        return false;
    return !m->inode || h->offset + (at - h->start) == m->offset + (at - m->start);
}

// Page by page, so that it does not matter where either side joins mappings.
static bool records_match_host(u64 low, u64 high)
{
    u64 pages_host = 0, pages_ours = 0;

    range_sync_growing_stacks();
    read_host_maps(low, high);
    for (int i = 0; i < host_map_count; i++) {
        const HostMap *h = &host_maps[i];
        for (u64 at = h->start; at < h->end && h->end - h->start < GiB; at += PAGE_SIZE) {
            pages_host++;
            const Mapping *m = aspace_find(at);
            if (!m || !agree(h, m, at)) {
                printf("# differs at %lx (host %lx-%lx r%d w%d s%d off %lx)\n", at, h->start,
                       h->end, h->readable, h->writable, h->shared, h->offset);
                if (m)
                    printf("# ours %lx-%lx prot %x flags %x off %lx\n", m->start, m->end, m->prot,
                           m->flags, m->offset);
                return false;
            }
        }
    }
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m))
        if (m->start >= low && m->end <= high)
            pages_ours += (m->end - m->start) / PAGE_SIZE;
    if (pages_host != pages_ours)
        printf("# %lu pages on the host, %lu in the records\n", pages_host, pages_ours);
    return pages_host == pages_ours && tree_breach() == NULL;
}

// ---------------------------------------------------------------- twin calls

static int test_file = -1;

static void open_test_file(void)
{
    if (test_file >= 0)
        return;
    test_file = (int)syscall(SYS_memfd_create, "model", 0);
    CHECK(ftruncate(test_file, PAGES(WINDOW_PAGES)) == 0);
}

static u64 pick_prot(void)
{
    static const u64 prots[] = {
        PROT_NONE,
        PROT_READ,
        PROT_READ | PROT_WRITE,
        PROT_READ | PROT_WRITE,
        PROT_READ | PROT_EXEC,
        PROT_READ | PROT_WRITE | PROT_EXEC,
    };
    return prots[pick(ARRAY_LEN(prots))];
}

static bool same_result(i64 ours, i64 twin)
{
    if (ours >= (i64)OURS && ours < (i64)(OURS + PAGES(WINDOW_PAGES)))
        return ours - (i64)OURS == twin - (i64)TWIN;
    if (ours < 0 || twin < 0)
        return ours == twin;
    return !(twin >= (i64)TWIN && twin < (i64)(TWIN + PAGES(WINDOW_PAGES)));
}

static bool twin_mmap(u64 at, u64 len)
{
    u64 prot = pick_prot(), kind = pick(4);
    u64 flags = kind == 0   ? MAP_SHARED
                : kind == 1 ? MAP_PRIVATE
                : kind == 2 ? MAP_PRIVATE | MAP_ANONYMOUS
                            : MAP_SHARED | MAP_ANONYMOUS;
    u64 fd = kind < 2 ? (u64)test_file : (u64)-1;
    u64 offset = kind < 2 ? PAGES(pick(8)) : 0;

    flags |= pick(3) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    i64 a = sys_mmap(OURS + at, len, prot, flags, fd, offset);
    i64 b = native(SYS_mmap, TWIN + at, len, prot, flags, fd, offset);
    return same_result(a, b);
}

static bool twin_munmap(u64 at, u64 len)
{
    return sys_munmap(OURS + at, len) == native(SYS_munmap, TWIN + at, len, 0, 0, 0, 0);
}

static bool twin_mprotect(u64 at, u64 len)
{
    u64 prot = pick_prot();
    i64 a = sys_mprotect(OURS + at, len, prot);
    i64 b = native(SYS_mprotect, TWIN + at, len, prot, 0, 0, 0);

    return a == b;
}

// One record and one vma, in both windows: what mremap does across borders
// depends on where the kernel happened to join neighbours.
static bool is_one_mapping(u64 at, u64 len)
{
    const Mapping *m = aspace_find(OURS + at);
    if (!m)
        return true;
    if (m->end < OURS + at + len)
        return false;
    read_host_maps(TWIN, TWIN + PAGES(WINDOW_PAGES));
    for (int i = 0; i < host_map_count; i++)
        if (host_maps[i].start <= TWIN + at && host_maps[i].end >= TWIN + at + len)
            return true;
    return false;
}

static bool twin_mremap(u64 at, u64 len)
{
    u64 new_len = PAGES(1 + pick(8)), target = PAGES(pick(WINDOW_PAGES - 8));
    u64 kind = pick(4);
    u64 flags = kind == 0   ? 0
                : kind == 1 ? MREMAP_MAYMOVE
                : kind == 2 ? MREMAP_MAYMOVE | MREMAP_FIXED
                            : MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;

    if (!is_one_mapping(at, len))
        return true;
    i64 a = sys_mremap(OURS + at, len, new_len, flags, OURS + target);
    i64 b = native(SYS_mremap, TWIN + at, len, new_len, flags, TWIN + target, 0);
    bool same = same_result(a, b);
    if (!same)
        printf("# mremap ours %lx twin %lx, to %lu pages, flags %lu, target page %lu\n", a, b,
               (u64)(new_len / PAGE_SIZE), flags, (u64)(target / PAGE_SIZE));
    if (a > 0 && (u64)a - OURS >= PAGES(WINDOW_PAGES))
        sys_munmap((u64)a, new_len);
    if (b > 0 && (u64)b - TWIN >= PAGES(WINDOW_PAGES))
        native(SYS_munmap, (u64)b, new_len, 0, 0, 0, 0);
    return same;
}

static bool guard_something(u64 at, u64 len)
{
    bool busy;

    if (pick(2))
        aspace_guard_code(OURS + at, OURS + at + len);
    else
        aspace_unguard_code(OURS + at, &busy);
    return true;
}

static bool twin_remap_file_pages(u64 at, u64 len)
{
    if (!is_one_mapping(at, len))
        return true;
    u64 page = pick(8);
    i64 a = sys_remap_file_pages(OURS + at, len, 0, page, 0);
    i64 b = native(SYS_remap_file_pages, TWIN + at, len, 0, page, 0, 0);
    return a == b;
}

typedef bool TwinCall(u64 at, u64 len);
static TwinCall *const twin_calls[] = {
    twin_mmap,
    twin_mmap,
    twin_mmap,
    twin_munmap,
    twin_mprotect,
    twin_mprotect,
    twin_mremap,
    twin_mremap,
    guard_something,
    guard_something,
    twin_remap_file_pages,
};

TEST(random_calls_have_the_results_and_effects_of_the_kernel)
{
    open_test_file();
    for (int step = 0; step < 20000; step++) {
        u64 at = PAGES(pick(WINDOW_PAGES - 8)), len = PAGES(1 + pick(8));
        u64 which = pick(ARRAY_LEN(twin_calls));
        if (!twin_calls[which](at, len)) {
            printf("# step %d, call %lu, page %lu, %lu pages, errno-like results differ\n", step,
                   which, (u64)(at / PAGE_SIZE), (u64)(len / PAGE_SIZE));
            CHECK(false);
        }
        if (step % 50 == 0)
            CHECK(records_match_host(OURS, OURS + PAGES(WINDOW_PAGES)));
    }
    CHECK(records_match_host(0, CLIENT_END));
    sys_munmap(OURS, PAGES(WINDOW_PAGES));
    native(SYS_munmap, TWIN, PAGES(WINDOW_PAGES), 0, 0, 0, 0);
}

TEST(malformed_requests_get_the_errors_of_the_kernel)
{
    const u64 a = MAP_PRIVATE | MAP_ANONYMOUS;
    const u64 requests[][6] = {
        {0, 0, PROT_READ, a, -1ull, 0},
        {0, ~0ull, PROT_READ, a, -1ull, 0},
        {0, 4096, PROT_READ, MAP_PRIVATE, 9999, 0},
        {0, 4096, PROT_READ, MAP_ANONYMOUS, -1ull, 0},
        {0, 4096, PROT_READ, a, -1ull, 123},
        {OURS + 5, 4096, PROT_READ, a | MAP_FIXED, -1ull, 0},
        {0x7ffffffff000ull, 4096, PROT_READ, a | MAP_FIXED, -1ull, 0},
        {0x8000000000000000ull, 4096, PROT_READ, a | MAP_FIXED, -1ull, 0},
        {0, 0x800000000000ull, PROT_READ, a, -1ull, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        const u64 *r = requests[i];
        i64 ours = sys_mmap(r[0], r[1], r[2], r[3], r[4], r[5]);
        i64 kernel = native(SYS_mmap, r[0], r[1], r[2], r[3], r[4], r[5]);
        if (ours != kernel)
            printf("# request %zu: ours %ld, kernel %ld\n", i, ours, kernel);
        CHECK(ours == kernel);
    }
    CHECK(sys_munmap(OURS + 1, 4096) == -EINVAL);
    CHECK(sys_munmap(OURS, 0) == -EINVAL);
    CHECK(sys_mprotect(OURS + 1, 4096, PROT_READ) == -EINVAL);
    CHECK(sys_mprotect(OURS, 4096, PROT_READ) == -ENOMEM);
    CHECK(sys_mprotect(OURS, 0, PROT_READ) == 0);
    CHECK(sys_mprotect(OURS, 4096, 0x800) == -EINVAL);
    CHECK(sys_mremap(OURS, 4096, 8192, MREMAP_MAYMOVE, 0) == -EFAULT);
    CHECK(sys_mremap(OURS, 4096, 8192, 0x80, 0) == -EINVAL);
    CHECK(sys_mremap(OURS, 4096, 0, MREMAP_MAYMOVE, 0) == -EINVAL);
    CHECK(sys_shmdt(OURS) == -EINVAL);
}

TEST(unsteered_mappings_stay_in_the_clients_range)
{
    static i64 at[512];
    static u64 len[512];

    for (int step = 0; step < 20000; step++) {
        u64 i = pick(ARRAY_LEN(at));
        if (at[i] > 0) {
            if (pick(3) == 0) {
                u64 wanted = PAGES(1 + pick(600));
                i64 moved = sys_mremap((u64)at[i], len[i], wanted, MREMAP_MAYMOVE, 0);
                CHECK(moved > 0 && (u64)moved + wanted <= CLIENT_END);
                at[i] = moved;
                len[i] = wanted;
            } else {
                CHECK(sys_munmap((u64)at[i], len[i]) == 0);
                at[i] = 0;
            }
        } else {
            len[i] = PAGES(1 + pick(pick(4) ? 20 : 1200));
            u64 hint = pick(3) == 0 ? OURS + PAGES(pick(5000)) : 0;
            at[i] = sys_mmap(hint, len[i], pick_prot(), MAP_PRIVATE | MAP_ANONYMOUS, -1ull, 0);
            CHECK(at[i] > 0 && (u64)at[i] + len[i] <= CLIENT_END);
            CHECK((u64)at[i] >= CLIENT_HIGH_START || (u64)at[i] + len[i] < CACHE_START);
        }
    }
    CHECK(records_match_host(0, CLIENT_END));
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        if (at[i] > 0)
            sys_munmap((u64)at[i], len[i]);
    CHECK(records_match_host(0, CLIENT_END));
}

TEST(break_grows_shrinks_and_refuses)
{
    GuestAddr start = (GuestAddr)sys_brk(0);
    CHECK(sys_brk(start + 100) == (i64)(start + 100));
    *(volatile u8 *)(start + 99) = 1;
    CHECK(sys_brk(start + 5 * MiB) == (i64)(start + 5 * MiB));
    CHECK(strcmp(aspace_find(start)->name, "[heap]") == 0);
    *(volatile u8 *)(start + 5 * MiB - 1) = 1;
    CHECK(sys_brk(CLIENT_END + 1) == (i64)(start + 5 * MiB));
    CHECK(sys_brk(start - 1) == (i64)(start + 5 * MiB));
    CHECK(records_match_host(BRK_START, BRK_LIMIT));
    CHECK(sys_brk(start + 4096) == (i64)(start + 4096));
    CHECK(aspace_find(start + 4096) == NULL);
    CHECK(*(volatile u8 *)(start + 99) == 1);
    CHECK(sys_mmap(start + PAGES(16), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1ull, 0) > 0);
    CHECK(sys_brk(start + PAGES(20)) == (i64)(start + 4096));
    sys_munmap(start + PAGES(16), 4096);
    CHECK(sys_brk(start) == (i64)start);
    CHECK(records_match_host(BRK_START, BRK_LIMIT));
}

TEST(shared_segments_attach_and_detach)
{
    int id = shmget(IPC_PRIVATE, 3 * 4096 - 5, IPC_CREAT | 0600);
    CHECK(id >= 0);
    i64 a = sys_shmat((u64)id, 0, 0);
    i64 b = sys_shmat((u64)id, OURS + 7, SHM_RND | SHM_RDONLY);
    shmctl(id, IPC_RMID, NULL);
    CHECK(a > 0 && (u64)a < CLIENT_END && b == (i64)OURS);
    *(volatile u8 *)a = 77;
    CHECK(*(volatile u8 *)b == 77);
    CHECK(aspace_find((u64)a + 8192)->prot == (PROT_READ | PROT_WRITE));
    CHECK(aspace_find(OURS)->prot == PROT_READ);
    CHECK(sys_munmap(OURS + 4096, 4096) == 0);
    CHECK(records_match_host(0, CLIENT_END));
    CHECK(sys_shmdt(OURS) == 0);
    CHECK(aspace_find(OURS) == NULL && aspace_find(OURS + 8192) == NULL);
    CHECK(sys_shmdt((u64)a) == 0);
    CHECK(records_match_host(0, CLIENT_END));
}

TEST(growing_stack_takes_its_records_along)
{
    const u64 flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
    i64 at = sys_mmap(0, PAGES(4), PROT_READ | PROT_WRITE, flags, -1ull, 0);
    CHECK(at > 0);
    for (u64 depth = 0; depth <= 4 * MiB; depth += 4096)
        *(volatile u8 *)((u64)at - depth) = 1;
    CHECK(aspace_find((u64)at - 3 * MiB) != NULL);
    CHECK(aspace_find((u64)at)->start == (u64)at - 4 * MiB);
    CHECK(records_match_host(0, CLIENT_END));
    i64 other = sys_mmap(0, PAGES(4), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1ull, 0);
    CHECK((u64)other + PAGES(4) + MiB < (u64)at - 4 * MiB || (u64)other > (u64)at);
    CHECK(sys_munmap((u64)other, PAGES(4)) == 0);
    CHECK(sys_munmap((u64)at - 4 * MiB, 4 * MiB + PAGES(4)) == 0);
    CHECK(records_match_host(0, CLIENT_END));
}
