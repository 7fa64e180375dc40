/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest task of which half of the time is work, of computers whose steps take a + b times as long as a task. */
#include "tools/bench/bench.h"
#include "tools/bench/metg_search.h"

#include "support/run_suite.h" /* behind command.h, as Check has a macro of a name in it */
#include <string.h>

static metg_search search(double a, double b)
{
    metg_search s = metg_search_begin();
    while (s.us > 0) {
        ck_assert_int_lt(s.tried, 24);
        metg_search_take(&s, s.us / (a + b * s.us));
    }
    return s;
}

/* us / (a + b us) is one half at a / (2 - b). */
START_TEST(found)
{
    static const double starts[] = { 0.7, 5, 33, 300 }, slopes[] = { 1, 1.2, 1.5, 1.9 };
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            double least = starts[i] / (2 - slopes[k]);
            metg_search s = search(starts[i], slopes[k]);
            if (least > METG_MOST_US) {
                ck_assert_double_eq(s.large, 0);
                continue;
            }
            ck_assert_msg(s.large >= least * 0.999 && s.large <= least * 1.04, "%g + %g: %g for %g", starts[i],
                          slopes[k], s.large, least);
            ck_assert_double_ge(s.large_part, 0.5);
        }
}
END_TEST

/* Where each task takes three times as long as it works no length is large enough, which two lengths tell: the longest
 * ones, which take longest to measure, are never tried. */
START_TEST(in_vain)
{
    static const double slopes[] = { 2.6, 4, 100 };
    for (int i = 0; i < 3; i++) {
        metg_search s = search(10, slopes[i]);
        ck_assert_double_eq(s.large, 0);
        ck_assert_msg(s.tried <= 3 && s.small < METG_MOST_US / 2, "%g: %d lengths up to %g us", slopes[i], s.tried,
                      s.small);
    }
}
END_TEST

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/* Each task says that it leaves nearly all of its device: without, workers carry out one behind the other. */
START_TEST(tasks_leave_room)
{
    enum { LISTS = 6, STEPS = 5 };
    gantry_error err = { 0 };
    char *text = NULL;
    size_t length = 0;
    gantry_graph *g = bench_busy(LISTS, STEPS, 2, 3.5);
    ck_assert_msg(!gantry_graph_check(g, &err) && !gantry_graph_json(g, &text, &length, &err), "%s", err.text);
    ck_assert_uint_eq(gantry_graph_node_count(g), LISTS * STEPS);
    ck_assert_int_eq(count_of(text, "\"share\": 0.01"), LISTS * STEPS);
    gantry_free(text);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("metg");
    TCase *tests = tcase_create("metg");
    tcase_add_test(tests, found);
    tcase_add_test(tests, in_vain);
    tcase_add_test(tests, tasks_leave_room);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
