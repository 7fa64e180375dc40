/* SPDX-License-Identifier: Apache-2.0 */
/* The most that is in use from some time on, against an array that is added up anew each time. */
#include "scheduler/policies/list/profile.h"

#include "base/map.h"
#include "support/run_suite.h"
#include <check.h>

enum { TIMES = 40, CHANGES = 400 };

static int64_t naive_most(const int64_t *delta, int from)
{
    int64_t level = 0, most = INT64_MIN;
    for (int t = 0; t < TIMES; t++) {
        level += delta[t];
        if (t >= from && level > most)
            most = level;
    }
    return most;
}

START_TEST(most_is_that_of_an_array)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        int64_t delta[TIMES] = { 0 };
        gy_profile u;
        ck_assert(gy_profile_init(&u));
        ck_assert_int_eq(gy_profile_most(&u, 0), 0);
        for (uint64_t i = 0; i < CHANGES; i++) {
            uint64_t r = gy_hash64(seed * 1000 + i);
            int at = (int)(r % TIMES), from = (int)(r >> 32) % TIMES;
            int64_t by = (int64_t)(r >> 40) % 1000 - (r & 1 << 20 ? 500 : 0);
            delta[at] += by;
            ck_assert(gy_profile_add(&u, at * INT64_C(1000), by));
            from = from < 0 ? -from : from;
            ck_assert_int_eq(gy_profile_most(&u, from * INT64_C(1000)), naive_most(delta, from));
            ck_assert_int_eq(gy_profile_most(&u, from * INT64_C(1000) + 999), naive_most(delta, from));
        }
        ck_assert_uint_le(u.at.count, TIMES + 1); /* one entry a time, and nobody */
        gy_profile_free(&u);
    }
}
END_TEST

/* In the order of time, as most changes come, it is no list: a lookup among many stays short. */
START_TEST(it_stays_flat)
{
    enum { MANY = 1 << 17 };
    gy_profile u;
    ck_assert(gy_profile_init(&u));
    for (int i = 0; i < MANY; i++)
        ck_assert(gy_profile_add(&u, i, 1));
    int64_t sum = 0;
    for (int i = 0; i < MANY; i++)
        sum += gy_profile_most(&u, i);
    ck_assert_int_eq(sum, INT64_C(1) * MANY * MANY); /* a list would take 10^10 steps, and the test's time */
    gy_profile_free(&u);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("usage");
    TCase *c = tcase_create("usage");
    tcase_add_test(c, most_is_that_of_an_array);
    tcase_add_test(c, it_stays_flat);
    suite_add_tcase(s, c);
    return run_suite(s);
}
