// SPDX-License-Identifier: MIT
//
// The walker of the client's mappings: each test breaks the records, or goes past them to the
// kernel, and the walker's sentence names it; when the damage is undone the walker is content.
#include <stddef.h>
#include <unistd.h>

#include "engine/aspace/aspace_internal.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

#define PLACE  0x050000000000ull
#define PAGES  8
#define ANON   (MAP_PRIVATE | MAP_ANONYMOUS)
#define READS  PROT_READ
#define WRITES (PROT_READ | PROT_WRITE)

static MapNode *node_at(u64 page)
{
    return tree_find(PLACE + page * PAGE_SIZE);
}

static const char *breach(void)
{
    lock_acquire(&engine_lock);
    const char *sentence = aspace_validate(true);
    lock_release(&engine_lock);
    return sentence ? sentence : "none";
}

// Eight pages that may be written to, of which the third may not, and two of a shared file.
static void begin(void)
{
    static bool is_ready;
    if (!is_ready) {
        aspace_init();
        CHECK(sys_mmap(PLACE, PAGES * PAGE_SIZE, WRITES, ANON | MAP_FIXED, -1ull, 0) == (i64)PLACE);
        CHECK(sys_mprotect(PLACE + 2 * PAGE_SIZE, PAGE_SIZE, READS) == 0);
        CHECK(sys_mmap(PLACE + PAGES * PAGE_SIZE, PAGE_SIZE, WRITES,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1ull, 0) > 0);
        is_ready = true;
    }
    CHECK_STR(breach(), "none");
}

TEST(the_walker_is_content_with_records_that_say_what_the_kernel_says)
{
    begin();
}

TEST(mappings_that_overlap_or_could_be_one_are_named)
{
    begin();
    MapNode *read_only = node_at(2);
    read_only->m.prot = WRITES;
    CHECK_STR(breach(), "two mappings that differ in nothing are not joined");
    read_only->m.prot = READS;
    begin();
}

TEST(sums_and_places_in_the_tree_that_are_wrong_are_named)
{
    begin();
    MapNode *node = node_at(2);
    node->max_gap += PAGE_SIZE;
    CHECK_STR(breach(), "what a subtree of mappings says of its members is wrong");
    node->max_gap -= PAGE_SIZE;
    CHECK_STR(breach(), "none");
    MapNode *parent = node->left || node->right ? node : node_at(0);
    u64 priority = parent->priority;
    if (parent->left || parent->right) {
        parent->priority = 0;
        CHECK_STR(breach(), "a mapping stands above one of higher priority");
        parent->priority = priority;
    }
    node->m.end += 1; // what follows begins before that
    node->high += 1;
    CHECK(strcmp(breach(), "none") != 0);
    node->high -= 1;
    node->m.end -= 1;
    begin();
}

TEST(a_shared_mapping_that_its_file_does_not_know_is_named)
{
    begin();
    MapNode *shared = node_at(PAGES);
    MapNode **link = shared->alias_link;
    *link = shared->alias_next;
    CHECK_STR(breach(), "a shared mapping is not in the list of its file");
    *link = shared;
    begin();
}

TEST(what_the_kernel_maps_and_nobody_recorded_is_named)
{
    begin();
    u64 place = PLACE + 0x100000;
    CHECK(raw_syscall6(SYS_mmap, place, PAGE_SIZE, READS, ANON | MAP_FIXED, (u64)-1, 0) > 0);
    CHECK_STR(breach(), "the kernel has memory among the client's that is not recorded");
    raw_syscall2(SYS_munmap, place, PAGE_SIZE);
    begin();
}

TEST(what_is_recorded_and_the_kernel_has_not_is_named)
{
    begin();
    raw_syscall2(SYS_munmap, PLACE + 5 * PAGE_SIZE, PAGE_SIZE);
    CHECK_STR(breach(), "memory of the client's is recorded that the kernel does not have");
    raw_syscall6(SYS_mmap, PLACE + 5 * PAGE_SIZE, PAGE_SIZE, WRITES, ANON | MAP_FIXED, (u64)-1, 0);
    begin();
}

TEST(a_protection_that_the_client_has_not_chosen_is_named)
{
    begin();
    raw_syscall3(SYS_mprotect, PLACE + 2 * PAGE_SIZE, PAGE_SIZE, WRITES);
    CHECK_STR(breach(), "the kernel lets the client write to what it has write-protected");
    raw_syscall3(SYS_mprotect, PLACE + 2 * PAGE_SIZE, PAGE_SIZE, PROT_NONE);
    CHECK_STR(breach(), "the kernel does not let the client read what it may read");
    raw_syscall3(SYS_mprotect, PLACE + 2 * PAGE_SIZE, PAGE_SIZE, READS);
    raw_syscall3(SYS_mprotect, PLACE, PAGE_SIZE, READS);
    CHECK_STR(breach(),
              "the kernel does not let the client write to memory that holds no guarded code");
    raw_syscall3(SYS_mprotect, PLACE, PAGE_SIZE, WRITES);
    begin();
}
