// SPDX-License-Identifier: MIT
//
// What a string function costs by itself, without the interception: the numbers are printed, the
// limits are a hundred times what is usual, which only a defect reaches.
#include <time.h>

#include "memcheck_strings_world.h"

// Of processor time: what others do on the machine does not count.
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// The best of several tries.
static double ns_per_call(const char *name, u64 a0, u64 a1, u64 a2)
{
    enum { TRIES = 7, CALLS = 20000 };
    ToolCall call = {.function = world_function(name), .args = {a0, a1, a2}};
    double best = 1e9;
    for (int i = 0; i < TRIES; i++) {
        double start = now_ns();
        for (int k = 0; k < CALLS; k++) {
            call.args[0] = a0;
            call.function->replace(&world_thread, &call);
        }
        double ns = (now_ns() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    CHECK(!call.run_original);
    printf("# %-8s %4llu %6.1f ns\n", name, (unsigned long long)a2, best);
    return best;
}

static u64 text_at(u64 offset, u64 length)
{
    memset((void *)(ARENA_START + offset), 'x', length);
    *(u8 *)(ARENA_START + offset + length) = 0;
    return ARENA_START + offset;
}

TEST(clean_strings_cost_little)
{
    world_start();
    shadow_make_defined(ARENA_START, ARENA_BYTES);
    enum { LIMIT_NS = 4000 };
    u64 s7 = text_at(16, 7), t7 = text_at(512, 7), s100 = text_at(1024, 100),
        t100 = text_at(1280, 100), big = ARENA_START + 4096;
    CHECK(ns_per_call("strlen", s7, 0, 0) < LIMIT_NS);
    CHECK(ns_per_call("strlen", s100, 0, 0) < LIMIT_NS);
    CHECK(ns_per_call("strcmp", s7, t7, 0) < LIMIT_NS);
    CHECK(ns_per_call("strcmp", s100, t100, 0) < LIMIT_NS);
    CHECK(ns_per_call("memcmp", s7, t7, 7) < LIMIT_NS);
    CHECK(ns_per_call("memcpy", big, s100, 8) < LIMIT_NS);
    CHECK(ns_per_call("memcpy", big, s100, 32) < LIMIT_NS);
    CHECK(ns_per_call("memcpy", big, s100, 100) < LIMIT_NS);
    CHECK(ns_per_call("memcpy", big, big + 4096, 4096) < 10 * LIMIT_NS);
    CHECK(ns_per_call("memset", big, 0, 32) < LIMIT_NS);
    CHECK(ns_per_call("memset", big, 0, 4096) < 10 * LIMIT_NS);
    CHECK(ns_per_call("strchr", s7, 'y', 0) < LIMIT_NS);
    CHECK(ns_per_call("strcpy", big, s7, 0) < LIMIT_NS);
    CHECK(ns_per_call("strspn", s7, t7, 0) < LIMIT_NS);
}

TEST(what_is_undefined_behind_the_end_costs_nothing)
{
    world_start();
    shadow_make_defined(ARENA_START, ARENA_BYTES);
    u64 s7 = text_at(16, 4);
    shadow_make_undefined(s7 + 5, 100);
    enum { LIMIT_NS = 4000 };
    CHECK(ns_per_call("strlen", s7, 0, 0) < LIMIT_NS);
    CHECK(ns_per_call("strcmp", s7, s7, 0) < LIMIT_NS);
    CHECK(!told.condition);
}
