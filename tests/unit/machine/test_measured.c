/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/measured.h"
#include "support/run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* By the definition: as many samples below as above; then the same of the distances. */
START_TEST(median_and_deviation)
{
    double odd[] = { 9, 1, 2, 100, 4 }, even[] = { 8, 2, 4, 6 }, one[] = { 3.5 };
    gy_figure f = gy_figure_of(odd, 5);
    ck_assert(f.us == 4 && f.mad_us == 3 && f.samples == 5); /* distances 5 3 2 96 0 */
    f = gy_figure_of(even, 4);
    ck_assert(f.us == 5 && f.mad_us == 2); /* 3 3 1 1 */
    f = gy_figure_of(one, 1);
    ck_assert(f.us == 3.5 && f.mad_us == 0);
    ck_assert_uint_eq(gy_figure_of(NULL, 0).samples, 0);
}
END_TEST

static int not_above(const double *x, int n, double limit)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += x[i] <= limit;
    return count;
}

START_TEST(median_of_random_samples)
{
    srand((unsigned)_i);
    for (int round = 0; round < 200; round++) {
        double x[40], work[40];
        int n = 1 + rand() % 40;
        for (int i = 0; i < n; i++)
            work[i] = x[i] = rand() % 20;
        gy_figure f = gy_figure_of(work, (uint32_t)n);
        ck_assert_int_ge(2 * not_above(x, n, f.us), n);
        for (int i = 0; i < n; i++)
            x[i] = -x[i];
        ck_assert_int_ge(2 * not_above(x, n, -f.us), n);
        for (int i = 0; i < n; i++)
            x[i] = fabs(-x[i] - f.us);
        ck_assert_int_ge(2 * not_above(x, n, f.mad_us), n);
    }
}
END_TEST

START_TEST(free_twice)
{
    gy_measured m = { 0 };
    gy_measured_copy copy = { .from = 0, .to = 1 };
    gy_measured_point point = { 1024, { 2, 0.1, 5 }, 0 };
    ck_assert(gy_vec_push(&copy.points, point) && gy_vec_push(&m.copies, copy));
    gy_text_add(&m.fingerprint, "driver: 1\n");
    gy_measured_free(&m);
    gy_measured_free(&m);
    ck_assert(m.copies.count == 0 && !m.fingerprint.at);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measured");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, median_and_deviation);
    tcase_add_loop_test(tests, median_of_random_samples, 0, 5);
    tcase_add_test(tests, free_twice);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
