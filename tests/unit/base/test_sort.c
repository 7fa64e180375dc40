/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include "suite.h"

enum { MOST = 5000 };

/* Sorted, stable, and a permutation: each is checked by itself. */
static void check(const uint32_t *before, const uint32_t *after, const int64_t *key, size_t count)
{
    static uint32_t place[MOST];
    static uint8_t seen[MOST];
    for (size_t i = 0; i < count; i++) {
        place[before[i]] = (uint32_t)i;
        seen[i] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        assert_quietly(!seen[after[i]]);
        seen[after[i]] = 1;
        if (i == 0)
            continue;
        int64_t a = key[after[i - 1]], b = key[after[i]];
        assert_quietly(a < b || (a == b && place[after[i - 1]] < place[after[i]]));
    }
}

/* Keys of one value, of few, of a narrow range far from 0, of all numbers. */
START_TEST(numbers_are_sorted_by_their_keys)
{
    static uint32_t before[MOST], after[MOST];
    static int64_t key[MOST];
    const size_t counts[] = { 0, 1, 2, 63, 64, 65, 1000, MOST };
    uint64_t state = 99;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int kind = 0; kind < 5; kind++) {
            for (size_t i = 0; i < counts[c]; i++) {
                uint64_t r = next_random(&state);
                key[i] = kind == 0   ? 7
                         : kind == 1 ? (int64_t)(r % 5) - 2
                         : kind == 2 ? INT64_MAX - (int64_t)(r % 100000)
                         : kind == 3 ? (int64_t)r
                                     : (int64_t)i;
                before[i] = (uint32_t)i;
            }
            for (size_t i = counts[c]; i > 1; i--) {
                size_t k = next_random(&state) % i;
                uint32_t t = before[i - 1];
                before[i - 1] = before[k];
                before[k] = t;
            }
            for (size_t i = 0; i < counts[c]; i++)
                after[i] = before[i];
            ck_assert(gy_sort_by_key(after, key, counts[c]));
            check(before, after, key, counts[c]);
        }
}
END_TEST

START_TEST(the_ends_of_the_range)
{
    int64_t key[70];
    uint32_t item[70];
    for (uint32_t i = 0; i < 70; i++) {
        key[i] = i % 2 ? INT64_MAX : INT64_MIN;
        item[i] = i;
    }
    ck_assert(gy_sort_by_key(item, key, 70));
    for (uint32_t i = 0; i < 35; i++)
        ck_assert(item[i] == 2 * i && item[35 + i] == 2 * i + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sort");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, numbers_are_sorted_by_their_keys);
    tcase_add_test(tests, the_ends_of_the_range);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
