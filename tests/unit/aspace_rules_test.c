// SPDX-License-Identifier: MIT
//
// The rules of the client's address space: where mappings go, what the client
// cannot touch, when blocks are retired, and what bad pointers do.
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine/aspace/aspace_internal.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

static u64 retired_low = ~0ull, retired_high;

static void note_retired(GuestAddr start, GuestAddr end)
{
    retired_low = min_u64(retired_low, start);
    retired_high = max_u64(retired_high, end);
}

__attribute__((constructor)) static void watch_code(void)
{
    aspace_code_changed_hook = note_retired;
}

// Whether blocks of [start, end) were retired since the last time it was asked.
static bool retired(GuestAddr start, GuestAddr end)
{
    bool result = retired_low <= start && retired_high >= end;

    retired_low = ~0ull;
    retired_high = 0;
    return result;
}

static bool nothing_retired(void)
{
    bool result = retired_high == 0;

    retired(0, 1);
    return result;
}

#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS)
#define NOFD     (-1ull)
#define FAR_FREE 0x480000000000ull

static u64 map(u64 hint, u64 len, u64 prot, u64 flags)
{
    i64 at = sys_mmap(hint, len, prot, flags, NOFD, 0);
    CHECK(at > 0);
    return (u64)at;
}

static u64 map_file(int fd, u64 len, u64 prot, u64 flags, u64 offset)
{
    i64 at = sys_mmap(0, len, prot, flags, (u64)fd, offset);
    CHECK(at > 0);
    return (u64)at;
}

static void unmap(u64 at, u64 len)
{
    CHECK(sys_munmap(at, len) == 0);
    retired(0, 1);
}

static int make_memfd(u64 size)
{
    int fd = (int)syscall(SYS_memfd_create, "jit", 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    return fd;
}

// What the host allows at `at`: "rwxp" as /proc/self/maps shows it.
static void host_perms(u64 at, char *ret_perms)
{
    char line[4400];
    unsigned long start, end;
    FILE *f = fopen("/proc/self/maps", "r");

    strcpy(ret_perms, "none");
    while (fgets(line, sizeof line, f)) {
        char perms[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && at >= start && at < end)
            strcpy(ret_perms, perms);
    }
    fclose(f);
}

static bool host_allows(u64 at, const char *perms)
{
    char real[8];

    host_perms(at, real);
    if (strncmp(real, perms, strlen(perms)) != 0)
        printf("# host has %s, wanted %s\n", real, perms);
    return strncmp(real, perms, strlen(perms)) == 0;
}

// ---------------------------------------------------------------- placement

static bool is_low(u64 at)
{
    return at >= CLIENT_LOW_START && at < CACHE_START;
}

static bool is_high(u64 at)
{
    return at >= CLIENT_HIGH_START && at < CLIENT_END;
}

TEST(code_goes_low_and_data_high)
{
    u64 data = map(0, 8192, PROT_READ | PROT_WRITE, ANON);
    u64 code = map(0, 8192, PROT_READ | PROT_EXEC, ANON);
    u64 bits32 = map(0, 8192, PROT_READ, ANON | MAP_32BIT);
    u64 big_code = map(0, 100 * MiB, PROT_READ | PROT_EXEC, ANON | MAP_NORESERVE);
    CHECK(is_high(data) && is_low(code) && is_low(bits32) && is_high(big_code));
    unmap(data, 8192), unmap(code, 8192), unmap(bits32, 8192), unmap(big_code, 100 * MiB);
}

TEST(elf_images_go_low_and_other_files_high)
{
    int elf = open("/proc/self/exe", O_RDONLY), text = open("/etc/passwd", O_RDONLY);
    u64 image = map_file(elf, 64 * KiB, PROT_READ, MAP_PRIVATE, 0);
    u64 shared = map_file(elf, 64 * KiB, PROT_READ, MAP_SHARED, 0);
    u64 words = map_file(text, 100, PROT_READ, MAP_PRIVATE, 0);
    close(elf), close(text);
    CHECK(is_low(image) && is_high(shared) && is_high(words));
    CHECK(strcmp(aspace_find(words)->name, "/etc/passwd") == 0);
    CHECK(aspace_find(words)->inode != 0);
    unmap(image, 64 * KiB), unmap(shared, 64 * KiB), unmap(words, 4096);
}

TEST(free_hints_are_honoured)
{
    u64 at = map(0x123456789000ull % CLIENT_END, 4096, PROT_READ, ANON);
    CHECK(at == 0x123456789000ull % CLIENT_END);
    CHECK(map(at, 4096, PROT_READ, ANON) != at);
    u64 in_cache = map(CACHE_START + 4096, 4096, PROT_READ, ANON);
    CHECK(is_high(in_cache));
    u64 engine = map(0x7f0000000000ull, 4096, PROT_READ, ANON);
    CHECK(is_high(engine));
    u64 round_and_far = map(CLIENT_END, 4096, PROT_READ, ANON);
    CHECK(round_and_far == CLIENT_END);
    unmap(round_and_far, 4096);
    u64 odd_and_far = map(CLIENT_END + 4096, 4096, PROT_READ, ANON);
    CHECK(is_high(odd_and_far));
}

TEST(neighbouring_maps_touch_and_large_ones_are_aligned)
{
    u64 a = map(0, 12 * 4096, PROT_READ, ANON), b = map(0, 4096, PROT_READ, ANON);
    CHECK(b + 4096 == a);
    u64 huge = map(0, 16 * MiB, PROT_READ | PROT_WRITE, ANON);
    CHECK(huge % HUGE_PAGE == 0);
    unmap(a, 12 * 4096), unmap(b, 4096), unmap(huge, 16 * MiB);
}

TEST(low_area_overflows_to_high_except_for_32_bit)
{
    static u64 at[1000];
    size_t n = 0;

    for (; n < ARRAY_LEN(at); n++) {
        at[n] = map(0, 60 * MiB, PROT_EXEC, ANON | MAP_NORESERVE);
        if (is_high(at[n]))
            break;
    }
    CHECK(n > 10 && n < ARRAY_LEN(at));
    CHECK(sys_mmap(0, 60 * MiB, PROT_READ, ANON | MAP_32BIT, NOFD, 0) == -ENOMEM);
    for (size_t i = 0; i <= n; i++)
        unmap(at[i], 60 * MiB);
}

// ---------------------------------------------------------------- protection of the engine

TEST(fixed_maps_cannot_replace_the_engine)
{
    u64 mine = (u64)&retired_low & ~4095ull;
    CHECK(sys_mmap(CACHE_START, 4096, PROT_READ, ANON | MAP_FIXED, NOFD, 0) == -ENOMEM);
    CHECK(sys_mmap(CACHE_END - 4096, 8192, PROT_READ, ANON | MAP_FIXED, NOFD, 0) == -ENOMEM);
    CHECK(sys_mmap(CACHE_START - 4096, 8192, PROT_READ, ANON | MAP_FIXED_NOREPLACE, NOFD, 0) ==
          -EEXIST);
    CHECK(sys_mmap(mine, 4096, PROT_READ, ANON | MAP_FIXED, NOFD, 0) == -ENOMEM);
    CHECK(sys_mmap(mine, 4096, PROT_READ, ANON | MAP_FIXED_NOREPLACE, NOFD, 0) == -EEXIST);
    CHECK(sys_munmap(mine, 4096) == -EINVAL);
    CHECK(sys_munmap(CACHE_START, 4096) == -EINVAL);
    CHECK(sys_mprotect(mine, 4096, PROT_NONE) == -ENOMEM);
    CHECK(sys_mremap(mine, 4096, 8192, MREMAP_MAYMOVE, 0) == -EFAULT);
    CHECK(sys_madvise(mine, 4096, MADV_DONTNEED) == -ENOMEM);
    u64 at = map(0, 4096, PROT_READ, ANON);
    CHECK(sys_mremap(at, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, mine) == -ENOMEM);
    CHECK(sys_mremap(at, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, CACHE_START) == -ENOMEM);
    unmap(at, 4096);
    retired(0, 1);
}

TEST(unmapping_everything_leaves_the_engine)
{
    u64 high = map(0, 4096, PROT_READ, ANON);
    u64 low = map(0, 4096, PROT_READ, ANON | MAP_32BIT);
    CHECK(sys_munmap(0x10000, USER_END - 0x10000) == 0);
    CHECK(!aspace_find(high) && !aspace_find(low));
    CHECK(host_allows(high, "none") && host_allows(low, "none"));
    retired(0, 1);
}

TEST(free_addresses_beyond_the_clients_range_can_be_had)
{
    u64 at = map(FAR_FREE, 8192, PROT_READ | PROT_WRITE, ANON | MAP_FIXED);
    u64 value = 5;
    CHECK(at == FAR_FREE);
    CHECK(guest_write(at, &value, sizeof value) && guest_read(at, &value, sizeof value));
    CHECK(!guest_read(at + 8188, &value, sizeof value));
    CHECK(map(FAR_FREE + 4096, 8192, PROT_READ, ANON | MAP_FIXED) == FAR_FREE + 4096);
    CHECK(*(volatile u64 *)at == 5);
    unmap(at, 12288);
    CHECK(!guest_read(at, &value, sizeof value));
}

TEST(mapping_up_to_the_cache_does_not_grow_into_it)
{
    u64 at = map(CACHE_START - 8192, 8192, PROT_READ | PROT_WRITE, ANON | MAP_FIXED);
    CHECK(sys_mremap(at, 8192, 16384, 0, 0) == -ENOMEM);
    i64 moved = sys_mremap(at, 8192, 16384, MREMAP_MAYMOVE, 0);
    CHECK(moved > 0 && is_high((u64)moved));
    unmap((u64)moved, 16384);
}

// ---------------------------------------------------------------- PROT_EXEC and blocks

TEST(nothing_is_executable_on_the_host)
{
    u64 at = map(0, 4096, PROT_EXEC, ANON);
    CHECK(host_allows(at, "r--p"));
    CHECK(aspace_find(at)->prot == PROT_EXEC);
    CHECK(sys_mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    CHECK(host_allows(at, "rw-p"));
    GuestAddr end;
    CHECK(aspace_executable(at + 100, &end) && end == at + 4096);
    CHECK(sys_mprotect(at, 4096, PROT_READ) == 0);
    CHECK(!aspace_executable(at, &end));
    unmap(at, 4096);
}

TEST(blocks_are_retired_when_their_code_goes_or_changes)
{
    u64 at = map(0, 16384, PROT_READ | PROT_EXEC, ANON);
    nothing_retired();
    CHECK(sys_mprotect(at, 4096, PROT_READ | PROT_WRITE) == 0 && retired(at, at + 4096));
    CHECK(sys_mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 && nothing_retired());
    CHECK(sys_mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 && nothing_retired());
    map(at + 4096, 4096, PROT_READ, ANON | MAP_FIXED);
    CHECK(retired(at + 4096, at + 8192));
    CHECK(sys_munmap(at + 8192, 4096) == 0 && retired(at + 8192, at + 12288));
    CHECK(sys_madvise(at, 4096, MADV_DONTNEED) == 0 && retired(at, at + 4096));
    i64 moved = sys_mremap(at, 4096, 8192, MREMAP_MAYMOVE, 0);
    CHECK(moved > 0 && retired(at, at + 4096));
    unmap(at, 16384), unmap((u64)moved, 8192);
}

// ---------------------------------------------------------------- guards

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

TEST(guarded_page_becomes_writable_by_its_first_store)
{
    bool busy = true;
    u64 at = map(0, 8192, RWX, ANON);
    aspace_guard_code(at + 10, at + 20);
    CHECK(host_allows(at, "r--p") && host_allows(at + 4096, "rw-p"));
    CHECK(aspace_find(at)->prot == RWX);
    CHECK(!aspace_unguard_code(at + 4096, &busy));
    CHECK(aspace_unguard_code(at + 100, &busy) && !busy && retired(at, at + 4096));
    CHECK(host_allows(at, "rw-p"));
    // A second thread that faulted at the same moment finds it done.
    CHECK(aspace_unguard_code(at + 100, &busy));
    unmap(at, 8192);
    CHECK(!aspace_unguard_code(at, &busy));
}

TEST(page_that_keeps_changing_is_busy)
{
    bool busy = false;
    u64 at = map(0, 4096, RWX, ANON);
    for (int i = 0; i < 16; i++) {
        aspace_guard_code(at, at + 1);
        CHECK(aspace_unguard_code(at, &busy) && !busy);
    }
    aspace_guard_code(at, at + 1);
    CHECK(aspace_unguard_code(at, &busy) && busy && aspace_code_is_busy(at));
    aspace_guard_code(at, at + 1);
    CHECK(host_allows(at, "rw-p"));
    unmap(at, 4096);
    u64 again = map(at, 4096, RWX, ANON | MAP_FIXED);
    CHECK(!aspace_code_is_busy(again));
    unmap(again, 4096);
}

TEST(guards_follow_mprotect)
{
    bool busy;
    u64 at = map(0, 8192, RWX, ANON);
    aspace_guard_code(at, at + 8192);
    CHECK(sys_mprotect(at, 8192, RWX) == 0 && host_allows(at, "r--p"));
    // Losing W keeps the blocks: nobody can have changed the code.
    nothing_retired();
    CHECK(sys_mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 && nothing_retired());
    CHECK(!aspace_unguard_code(at, &busy));
    CHECK(sys_mprotect(at, 8192, PROT_READ | PROT_WRITE) == 0);
    CHECK(retired(at, at + 8192) && host_allows(at, "rw-p") && host_allows(at + 4096, "rw-p"));
    unmap(at, 8192);
}

TEST(all_guards_can_be_lifted_for_a_system_call)
{
    u64 at = map(0, 8192, RWX, ANON);
    CHECK(!aspace_unguard_all());
    aspace_guard_code(at, at + 8192);
    CHECK(aspace_unguard_range(at + 4096, 10));
    CHECK(host_allows(at, "r--p") && host_allows(at + 4096, "rw-p"));
    CHECK(aspace_unguard_all() && retired(at, at + 4096) && host_allows(at, "rw-p"));
    CHECK(!aspace_unguard_all());
    unmap(at, 8192);
}

TEST(store_through_a_writable_alias_retires_the_executable_view)
{
    bool busy;
    int fd = make_memfd(64 * KiB);
    u64 code = map_file(fd, 16384, PROT_READ | PROT_EXEC, MAP_SHARED, 8192);
    u64 data = map_file(fd, 64 * KiB, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    retired(0, 1);
    aspace_guard_code(code + 4096, code + 4097); // the file at 12 KiB
    CHECK(host_allows(data + 12288, "r--s") && host_allows(data + 8192, "rw-s"));
    CHECK(aspace_unguard_code(data + 12288 + 8, &busy) && retired(code + 4096, code + 8192));
    CHECK(host_allows(data + 12288, "rw-s"));

    // A writable view that comes later, or becomes writable, retires at once.
    u64 later = map_file(fd, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 8192);
    CHECK(retired(code, code + 4096));
    CHECK(sys_mprotect(later, 4096, PROT_READ) == 0 && nothing_retired());
    CHECK(sys_mprotect(later, 4096, PROT_READ | PROT_WRITE) == 0 && retired(code, code + 4096));
    close(fd);
    unmap(code, 16384), unmap(data, 64 * KiB), unmap(later, 4096);
}

TEST(guarded_mapping_moves_whole)
{
    u64 at = map(0, 4 * 4096, RWX, ANON);
    memset((void *)at, 7, 4 * 4096);
    aspace_guard_code(at + 4096, at + 4097);
    i64 moved = sys_mremap(at, 4 * 4096, 600 * 4096, MREMAP_MAYMOVE, 0);
    CHECK(moved > 0 && ((u8 *)moved)[5000] == 7 && retired(at + 4096, at + 8192));
    CHECK(host_allows((u64)moved + 4096, "rw-p"));
    unmap((u64)moved, 600 * 4096);
}

// ---------------------------------------------------------------- guest access

static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    u64 resume = guest_access_fixup((u64)uc->uc_mcontext.gregs[REG_RIP]);

    (void)info;
    if (!resume)
        signal(sig, SIG_DFL);
    else
        uc->uc_mcontext.gregs[REG_RIP] = (greg_t)resume;
}

static void catch_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

TEST(bad_pointers_are_refused)
{
    u8 buffer[8192];
    u64 word = 1;
    static u64 engine_word = 3;

    catch_faults();
    u64 at = map(0, 8192, PROT_READ | PROT_WRITE, ANON);
    CHECK(sys_mprotect(at + 4096, 4096, PROT_NONE) == 0);
    CHECK(guest_write(at + 4088, &word, 8) && guest_read(at + 4088, &word, 8));
    CHECK(!guest_read(at + 4089, &word, 8) && !guest_write(at + 4092, &word, 8));
    CHECK(!guest_read(at, buffer, 4097) && guest_read(at, buffer, 4096));
    CHECK(!guest_read(0, &word, 8) && !guest_write(8, &word, 8));
    CHECK(!guest_read(CACHE_START, &word, 8) && !guest_read(CACHE_START - 4, &word, 8));
    CHECK(!guest_read((u64)&engine_word, &word, 8) && !guest_write((u64)&engine_word, &word, 8));
    CHECK(!guest_read(~0ull, &word, 8) && !guest_read(0x8000000000000000ull, &word, 1));
    CHECK(!guest_read(CLIENT_END - 1, &word, 8));
    CHECK(!guest_read(at, &word, ~0ull) && engine_word == 3);
    CHECK(guest_read(at, NULL, 0));
    CHECK(sys_mprotect(at, 4096, PROT_READ) == 0);
    CHECK(!guest_write(at, &word, 8) && guest_read(at, &word, 8));
    unmap(at, 8192);
}

TEST(strings_end_at_the_limit_of_buffer_and_memory)
{
    char text[64];
    catch_faults();
    u64 at = map(CACHE_START - 4096, 4096, PROT_READ | PROT_WRITE, ANON | MAP_FIXED);
    memset((void *)at, 'x', 4096);
    strcpy((char *)at, "hello");
    CHECK(guest_read_string(at, text, sizeof text) == 5 && strcmp(text, "hello") == 0);
    CHECK(guest_read_string(at, text, 6) == 5 && guest_read_string(at, text, 5) == -1);
    CHECK(guest_read_string(at + 4090, text, sizeof text) == -1);
    ((char *)at)[4095] = 0;
    CHECK(guest_read_string(at + 4090, text, sizeof text) == 5);
    CHECK(guest_read_string(at - 1, text, sizeof text) == -1);
    CHECK(guest_read_string((u64)text, text, sizeof text) == -1);
    CHECK(guest_read_string(at, text, 0) == -1);
    unmap(at, 4096);
}

TEST(engine_write_goes_through_a_guard)
{
    u64 word = 9;
    catch_faults();
    u64 at = map(0, 4096, RWX, ANON);
    aspace_guard_code(at, at + 1);
    CHECK(guest_write(at + 8, &word, sizeof word) && retired(at, at + 4096));
    CHECK(*(u64 *)(at + 8) == 9);
    unmap(at, 4096);
}

TEST(file_end_is_a_refusal_not_a_crash)
{
    u64 word;
    catch_faults();
    int fd = make_memfd(100);
    u64 at = map_file(fd, 8192, PROT_READ, MAP_SHARED, 0);
    CHECK(guest_read(at, &word, 8) && !guest_read(at + 4096, &word, 8));
    close(fd);
    unmap(at, 8192);
}

// ---------------------------------------------------------------- text, scale

static bool host_line_of(u64 at, char *ret_line, size_t size)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long start;
    bool found = false;

    while (!found && fgets(ret_line, (int)size, f))
        found = sscanf(ret_line, "%lx", &start) == 1 && start == at;
    fclose(f);
    return found;
}

TEST(maps_text_is_what_the_kernel_prints)
{
    static char text[64 * KiB];
    char line[4400];
    int exe = open("/proc/self/exe", O_RDONLY);
    u64 places[] = {
        map(0x20000000, 4096, PROT_READ, ANON | MAP_FIXED),
        map(0, 8192, PROT_READ | PROT_WRITE, ANON),
        map_file(exe, 4096, PROT_READ, MAP_PRIVATE, 4096),
        map_file(exe, 4096, PROT_READ, MAP_SHARED, 0),
    };
    close(exe);
    aspace_init();
    size_t len = aspace_maps_text(text, sizeof text - 1);
    text[len] = 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        CHECK(host_line_of(places[i], line, sizeof line));
        if (!strstr(text, line))
            printf("# not found: %s# in:\n%s", line, text);
        CHECK(strstr(text, line) != NULL);
    }
    if (host_line_of(0xffffffffff600000ull, line, sizeof line))
        CHECK(strstr(text, line) != NULL);
    size_t cut = aspace_maps_text(text, len - 1);
    CHECK(cut < len && text[cut - 1] == '\n');
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        unmap(places[i], i == 1 ? 8192 : 4096);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

TEST(hundred_thousand_records_stay_fast)
{
    enum { COUNT = 100000 };
    double start = seconds();

    // Records only: the kernel's own limit is 65,530 mappings.
    for (u64 i = 0; i < COUNT; i++) {
        u64 at = 0x040000000000ull + (i * 7919 % COUNT) * 8192;
        MapNode node = {.m = {.start = at, .end = at + 4096, .prot = i % 8, .flags = ANON}};
        tree_add(&node);
    }
    CHECK(tree_breach() == NULL);
    for (u64 i = 0; i < COUNT; i++) {
        CHECK(tree_find(0x040000000000ull + i * 8192) != NULL);
        CHECK(tree_gap_highest(0x040000000000ull, 0x050000000000ull, 8192, 4096) != 0);
    }
    for (u64 i = 0; i < COUNT; i++)
        tree_remove(0x040000000000ull + i * 8192, 0x040000000000ull + i * 8192 + 8192);
    CHECK(tree_breach() == NULL && tree_find(0x040000000000ull) == NULL);
    CHECK(seconds() - start < 20.0); // about 0.2 s; a linear structure takes minutes
}

TEST(adopted_memory_far_away_is_readable)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, ANON, -1, 0);
    u64 word = 0;
    CHECK(!guest_read((u64)page, &word, 8));
    aspace_adopt((u64)page, (u64)page + 4096, PROT_READ | PROT_EXEC, "[vdso]");
    *(u64 *)page = 11;
    GuestAddr end;
    CHECK(guest_read((u64)page, &word, 8) && word == 11);
    CHECK(aspace_executable((u64)page, &end));
    CHECK(sys_munmap((u64)page, 4096) == 0 && !guest_read((u64)page, &word, 8));
    retired(0, 1);
}

TEST(child_of_a_fork_lacks_what_was_kept_out)
{
    u64 at = map(0, 8192, PROT_READ | PROT_WRITE, ANON);
    CHECK(sys_madvise(at, 4096, MADV_DONTFORK) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        aspace_after_fork();
        _exit(aspace_find(at) == NULL && aspace_find(at + 4096) != NULL ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    unmap(at, 8192);
}
