// SPDX-License-Identifier: MIT
//
// The incumbent's own headers, unmodified: every macro that gives a result, and those that must only
// do no harm. The expected results are those of a tool that answers nothing (`none`), unless
// EVENTTEST is set: that tool adds the arguments up.
#include <valgrind/callgrind.h>
#include <valgrind/drd.h>
#include <valgrind/helgrind.h>
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>

#include <sys/mman.h>

#include "guest.h"

static volatile double kept = 3.5;

// Uses vector registers, which a request must not change.
__attribute__((noinline)) static long sum(long tid, long a, long b, long c)
{
    double x = (double)a + kept;
    kept = x - (double)a;
    return tid > 0 ? a + 10 * b + 100 * c : -1;
}

static void client_calls(int depth)
{
    double live[8];
    for (int i = 0; i < 8; i++)
        live[i] = i * 1.5;
    long none = VALGRIND_NON_SIMD_CALL0(sum);
    long one = VALGRIND_NON_SIMD_CALL1(sum, 1);
    long two = VALGRIND_NON_SIMD_CALL2(sum, 1, 2);
    long three = VALGRIND_NON_SIMD_CALL3(sum, 1, 2, 3);
    for (int i = 0; i < 8; i++)
        CHECK(live[i] == i * 1.5);
    (void)none; // its arguments are whatever the registers held
    CHECK((depth ? 1 : 0) == one % 10);
    CHECK((depth ? 21 : 0) == two % 100);
    CHECK((depth ? 321 : 0) == three);
}

// The code is changed through another mapping; the request makes that known.
static void discard(void)
{
    static const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3}; // mov eax, 1 ; ret
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    int (*function)(void) = (int (*)(void))page;
    CHECK(function() == 1);
    page[1] = 2;
    VALGRIND_DISCARD_TRANSLATIONS(page, sizeof code);
    CHECK(function() == 2);
    VALGRIND_DISCARD_TRANSLATIONS(page, ~0ul);
    VALGRIND_DISCARD_TRANSLATIONS(0, ~0ul);
    CHECK(function() == 2);
    VALGRIND_DISCARD_TRANSLATIONS(discard, 4096);
}

static void stacks(int depth)
{
    unsigned first = VALGRIND_STACK_REGISTER((void *)0x1000, (void *)0x2000);
    unsigned second = VALGRIND_STACK_REGISTER((void *)0x5000, (void *)0x4000);
    CHECK(depth ? first && second > first : !first && !second);
    VALGRIND_STACK_CHANGE(first, (void *)0x1000, (void *)0x3000);
    VALGRIND_STACK_DEREGISTER(first);
    VALGRIND_STACK_DEREGISTER(first);
    VALGRIND_STACK_DEREGISTER(12345);
}

static void harmless(void)
{
    char buffer[64] = "untouched";
    char block[64];
    VALGRIND_MALLOCLIKE_BLOCK(block, 32, 8, 0);
    VALGRIND_RESIZEINPLACE_BLOCK(block, 32, 48, 8);
    VALGRIND_FREELIKE_BLOCK(block, 8);
    VALGRIND_CREATE_MEMPOOL(block, 0, 0);
    VALGRIND_MEMPOOL_ALLOC(block, block, 8);
    VALGRIND_MEMPOOL_CHANGE(block, block, block + 8, 8);
    VALGRIND_MEMPOOL_TRIM(block, block, 8);
    VALGRIND_MEMPOOL_FREE(block, block + 8);
    CHECK(VALGRIND_MEMPOOL_EXISTS(block) == 0);
    VALGRIND_MOVE_MEMPOOL(block, buffer);
    VALGRIND_DESTROY_MEMPOOL(buffer);
    VALGRIND_DISABLE_ERROR_REPORTING;
    VALGRIND_ENABLE_ERROR_REPORTING;
    VALGRIND_ENABLE_ERROR_REPORTING;
    VALGRIND_CLO_CHANGE("--leak-check=full");
    VALGRIND_MAP_IP_TO_SRCLOC(harmless, buffer);
    CHECK(VALGRIND_COUNT_ERRORS == 0);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_ZERO_STATS;
    CALLGRIND_DUMP_STATS_AT("here");
    CALLGRIND_STOP_INSTRUMENTATION;
    ANNOTATE_HAPPENS_BEFORE(buffer);
    ANNOTATE_HAPPENS_AFTER(buffer);
    VALGRIND_HG_DISABLE_CHECKING(buffer, 8);
    VALGRIND_HG_ENABLE_CHECKING(buffer, 8);
    CHECK(DRD_GET_VALGRIND_THREADID == 0);
}

static void memory_checker(bool answered)
{
    unsigned char bytes[16] = {0}, bits[16];
    unsigned long a = 0, b = 0, c = 0, d = 0;
    unsigned long address = (unsigned long)bytes;
    CHECK((unsigned long)VALGRIND_MAKE_MEM_DEFINED(bytes, 16) == (answered ? address + 16 : 0));
    CHECK((unsigned long)VALGRIND_MAKE_MEM_UNDEFINED(bytes, 4) == (answered ? address + 4 : 0));
    CHECK((unsigned long)VALGRIND_MAKE_MEM_NOACCESS(bytes, 4) == (answered ? address + 4 : 0));
    CHECK((unsigned long)VALGRIND_CHECK_MEM_IS_DEFINED(bytes, 0) == (answered ? address : 0));
    VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(bytes, 16);
    unsigned got = VALGRIND_GET_VBITS(bytes, bits, 8);
    CHECK(answered || got == 0);
    VALGRIND_DO_LEAK_CHECK;
    VALGRIND_COUNT_LEAKS(a, b, c, d);
    CHECK(a == 0 && b == 0 && c == 0 && d == 0);
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 0;
    CHECK((int)RUNNING_ON_VALGRIND == depth);
    client_calls(depth);
    discard();
    stacks(depth);
    harmless();
    memory_checker(depth && getenv("EVENTTEST"));
    CHECK(VALGRIND_MONITOR_COMMAND("no such command") == (depth ? 1 : 0));
    int printed = VALGRIND_PRINTF("printed %d %s\n", 17, "times");
    CHECK(printed == (depth ? 17 : 0));
    say("done\n");
}
