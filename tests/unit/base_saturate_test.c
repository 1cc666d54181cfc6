// SPDX-License-Identifier: MIT
#include "base/saturate.h"
#include "unit.h"

TEST(sums_that_do_not_fit_stay_at_the_end_of_the_range)
{
    CHECK(saturate_add_i64(INT64_MAX, 1) == INT64_MAX);
    CHECK(saturate_add_i64(INT64_MIN, -1) == INT64_MIN);
    CHECK(saturate_add_i64(INT64_MAX, INT64_MIN) == -1);
    CHECK(saturate_sub_i64(0, INT64_MIN) == INT64_MAX);
    CHECK(saturate_sub_i64(INT64_MIN, 1) == INT64_MIN);
    CHECK(saturate_sub_i64(-1, INT64_MIN) == INT64_MAX);
    CHECK(saturate_add_u64(UINT64_MAX, 1) == UINT64_MAX);
    CHECK(saturate_add_u64(UINT64_MAX - 1, 1) == UINT64_MAX);
    CHECK(saturate_mul_u64(1ull << 33, 1ull << 33) == UINT64_MAX);
    CHECK(saturate_mul_u64(1ull << 33, 0) == 0);
    CHECK(saturate_to_i64(UINT64_MAX) == INT64_MAX);
    CHECK(saturate_to_i64(7) == 7);
}

TEST(what_grows_in_place_stays_there_too)
{
    i64 change = INT64_MIN + 5;
    u64 bytes = UINT64_MAX - 5;

    saturate_grow_i64(&change, -6);
    saturate_grow_u64(&bytes, 6);
    CHECK(change == INT64_MIN && bytes == UINT64_MAX);
    saturate_grow_i64(&change, 3);
    CHECK(change == INT64_MIN + 3);
}
