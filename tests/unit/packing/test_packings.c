/* SPDX-License-Identifier: Apache-2.0 */
/* Packings that were searched: which answers stand for a search, and which do not. */
#include "scheduler/plan/packings.h"

#include "base/memory.h"
#include "support/run_suite.h"

static const gy_packing_key key = { { 3, 5 } }, half_alike = { { 3, 6 } };

static void keep(gy_packings *all, uint64_t budget, bool found, bool proved)
{
    gy_packing answer = { .key = key, .budget = budget, .peak = budget, .proved = proved };
    answer.offset = found ? gy_calloc(2, sizeof *answer.offset) : NULL;
    ck_assert(gy_packings_keep(all, &answer));
}

START_TEST(a_failure_stands_for_searches_that_are_no_longer)
{
    gy_packings all = { 0 };
    keep(&all, 100, false, false);
    ck_assert(gy_packings_find(&all, key, 100) && gy_packings_find(&all, key, 99));
    ck_assert(!gy_packings_find(&all, key, 101));
    gy_packings_free(&all);
}
END_TEST

START_TEST(a_proof_stands_for_all)
{
    gy_packings all = { 0 };
    keep(&all, 100, false, true);
    ck_assert(gy_packings_find(&all, key, UINT64_MAX));
    ck_assert(!gy_packings_find(&all, half_alike, 1));
    gy_packings_free(&all);
}
END_TEST

START_TEST(a_longer_search_takes_the_place_of_a_shorter)
{
    gy_packings all = { 0 };
    keep(&all, 100, false, false);
    keep(&all, 200, true, false);
    const gy_packing *known = gy_packings_find(&all, key, UINT64_MAX);
    ck_assert(known && known->offset && known->budget == 200);
    ck_assert_uint_eq(all.at.count, 1);
    gy_packings_free(&all);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("packings");
    TCase *c = tcase_create("answers");
    tcase_add_test(c, a_failure_stands_for_searches_that_are_no_longer);
    tcase_add_test(c, a_proof_stands_for_all);
    tcase_add_test(c, a_longer_search_takes_the_place_of_a_shorter);
    suite_add_tcase(s, c);
    return run_suite(s);
}
